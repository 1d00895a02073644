import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { DateTime } from "luxon";
import { expectBooksAgree } from "../support/books.ts";
import { someOrAll } from "../support/soak.ts";
import {
  cardPayment,
  type Fields,
  newWorld,
  type Paid,
  type TestAgent,
  until,
  type World,
} from "../support/world.ts";

/** A window that is open all day but for the hour that is twelve hours from now, so that no test runs into its edge. */
function windowAround(now: Date): object {
  const far = DateTime.fromJSDate(now, { zone: "America/New_York" }).plus({ hours: 12 });
  const from = far.startOf("hour");
  return {
    timezone: "America/New_York",
    days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    from: from.toFormat("HH:mm"),
    to: from.plus({ hours: 1 }).toFormat("HH:mm"),
  };
}

const flags = ({ approval }: Paid) => approval?.flaggedByRuleTypes ?? [];

const flagged = async (agent: TestAgent, fields: Fields = {}) => flags(await agent.pay(fields));

/** They are judged by the same code; where both have rules is tried below. */
for (const noun of someOrAll(["project", "team"] as const, 1)) {
  describe(`payments under the rules of a ${noun}`, () => {
    let world: World;
    let version: number;
    before(async () => {
      world = await newWorld();
      version = 1;
    });

    /** Replaces the rules that bind every agent of the world. */
    async function rules(...set: readonly object[]): Promise<void> {
      const { projectId, teamId } = world.organization;
      const [id, operation] =
        noun === "project"
          ? ([projectId, "setProjectApprovalRules"] as const)
          : ([teamId, "setTeamApprovalRules"] as const);
      const body = { rules: set, version };
      ({ version } = await world.api.ok(operation, 200, { token: world.token, id, body }));
    }

    it("amount_above, recipient, merchant_category and rail hold what they name, as soon as set", async () => {
      const agent = await world.agent();
      expect(await flagged(agent, { amountCents: 501 })).to.deep.equal([]);
      await rules(
        { type: "amount_above", params: { amountCents: 500 } },
        { type: "recipient", params: { anyOf: ["Casino Royale"] } },
        { type: "merchant_category", params: { anyOf: ["7995"] } },
        { type: "rail", params: { anyOf: ["wallet"] } },
      );
      expect(await flagged(agent, { amountCents: 500 })).to.deep.equal([]);
      expect(await flagged(agent, { amountCents: 501 })).to.deep.equal(["amount_above"]);
      expect(await flagged(agent, { merchant: "CASINO royale" })).to.deep.equal(["recipient"]);
      expect(await flagged(agent, { merchantCategory: "7995" })).to.deep.equal(["merchant_category"]);
      expect(await flagged(agent, { merchantCategory: "7996" })).to.deep.equal([]);
      const both = { amountCents: 600, merchantCategory: "7995", merchant: "casino royale" };
      expect(await flagged(agent, both)).to.deep.equal(["amount_above", "recipient", "merchant_category"]);
      const wallet = {
        rail: "wallet",
        merchant: undefined,
        recipient: "0x52908400098527886E0F7030069857D2E4169EE7",
      };
      expect(await flagged(agent, wallet)).to.deep.equal(["rail"]);
      await rules();
      expect(await flagged(agent, both)).to.deep.equal([]);
      await expectBooksAgree(world, agent);
    });

    it("a payment held by a rule is approved, denied and cancelled like any other", async () => {
      await rules({ type: "amount_above", params: { amountCents: 0 } });
      const agent = await world.agent();
      const [approved, denied, cancelled] = [await agent.hold(), await agent.hold(), await agent.hold()];
      const { token } = world;
      const { approval } = await world.api.ok("approveApproval", 200, { token, id: approved.approvalId });
      expect(approval).to.deep.include({ resolution: "approved", flaggedByRuleTypes: ["amount_above"] });
      const body = { feedback: "no" };
      await world.api.ok("denyApproval", 200, { token, id: denied.approvalId, body });
      const own = { token: agent.key, id: cancelled.transactionId };
      const { transaction } = await world.api.ok("cancelPayment", 200, own);
      expect(transaction.denialCode).to.equal("CANCELLED_BY_AGENT");
      await expectBooksAgree(world, agent);
    });

    it("agent_threshold comes first; a payment that a limit denies has no flags", async () => {
      await rules({ type: "amount_above", params: { amountCents: 10 } });
      const agent = await world.agent({ autoApprovalThresholdCents: 20, budgetCents: 100 });
      expect(await flagged(agent, { amountCents: 20 })).to.deep.equal(["amount_above"]);
      expect(await flagged(agent, { amountCents: 21 })).to.deep.equal(["agent_threshold", "amount_above"]);
      const { approval, transaction } = await agent.pay({ amountCents: 60 });
      expect([transaction.denialCode, approval]).to.deep.equal(["BUDGET_EXCEEDED", null]);
    });

    it("velocity holds number count + 1, counting holds; many at once are counted one by one", async () => {
      await rules({ type: "velocity", params: { count: 3, windowSeconds: 3_600 } });
      const agent = await world.agent();
      const paid = await Promise.all(Array.from({ length: 10 }, () => agent.pay({ amountCents: 1 })));
      expect(paid.filter(({ approval }) => approval === null)).to.have.lengthOf(3);
      const held = paid.filter(({ approval }) => approval !== null);
      for (const { approval } of held) expect(approval?.flaggedByRuleTypes).to.deep.equal(["velocity"]);
    });

    it("duplicate holds all but one of the same amount to the same recipient, and no others", async () => {
      await rules({ type: "duplicate", params: { windowSeconds: 3_600 } });
      const agent = await world.agent();
      const same = { amountCents: 7, merchant: "Shop" };
      const paid = await Promise.all(Array.from({ length: 5 }, () => agent.pay(same)));
      expect(paid.filter(({ approval }) => approval === null)).to.have.lengthOf(1);
      expect(await flagged(agent, { ...same, merchant: "sHOP" })).to.deep.equal(["duplicate"]);
      expect(await flagged(agent, { ...same, amountCents: 8 })).to.deep.equal([]);
      expect(await flagged(agent, { ...same, merchant: "Shops" })).to.deep.equal([]);
      expect(await flagged(await world.agent(), same), "another agent's").to.deep.equal([]);
    });

    it("duplicate passes over what was denied", async () => {
      await rules({ type: "duplicate", params: { windowSeconds: 3_600 } });
      const agent = await world.agent({ autoApprovalThresholdCents: 0 });
      const same = { amountCents: 7, merchant: "Once" };
      const { approvalId } = await agent.hold(same);
      expect(await flagged(agent, same)).to.deep.equal(["agent_threshold", "duplicate"]);
      const second = await world.agent({ autoApprovalThresholdCents: 0 });
      const denied = await second.hold(same);
      const { token } = world;
      for (const id of [approvalId, denied.approvalId]) {
        await world.api.ok("denyApproval", 200, { token, id, body: { feedback: "no" } });
      }
      expect(await flagged(second, same)).to.deep.equal(["agent_threshold"]);
      expect(await flagged(agent, same), "one is still on hold").to.deep.equal([
        "agent_threshold",
        "duplicate",
      ]);
    });

    it("a duplicate rule that is set later knows of payments that were made before", async () => {
      await rules();
      const agent = await world.agent();
      await agent.pay({ amountCents: 9 });
      await rules({ type: "duplicate", params: { windowSeconds: 3_600 } });
      expect(await flagged(agent, { amountCents: 9 })).to.deep.equal(["duplicate"]);
    });

    it("new_recipient holds until a payment settled, in any case; declines don't count, nor others", async () => {
      await rules();
      const agent = await world.agent();
      await agent.pay({ merchant: "Known before" });
      await rules({ type: "new_recipient", params: {} });
      expect(await flagged(agent, { merchant: "KNOWN before" })).to.deep.equal([]);
      const { token } = world;
      const { approvalId } = await agent.hold({ merchant: "Stranger" });
      expect(await flagged(agent, { merchant: "Stranger" }), "on hold").to.deep.equal(["new_recipient"]);
      await world.api.ok("approveApproval", 200, { token, id: approvalId });
      expect(await flagged(agent, { merchant: "stranger" }), "settled").to.deep.equal([]);
      const declined = await agent.hold({ merchant: "sandbox-decline" });
      await world.api.ok("approveApproval", 200, { token, id: declined.approvalId });
      expect(await flagged(agent, { merchant: "sandbox-decline" })).to.deep.equal(["new_recipient"]);
      expect(await flagged(await world.agent(), { merchant: "Stranger" })).to.deep.equal(["new_recipient"]);
    });

    it("new_recipient does not unlearn by a reversal, and learns from a late settlement", async () => {
      await rules({ type: "new_recipient", params: {} });
      const agent = await world.agent();
      const { token } = world;
      for (const merchant of ["sandbox-reverse", "sandbox-slow"]) {
        const { approvalId, transactionId } = await agent.hold({ merchant });
        await world.api.ok("approveApproval", 200, { token, id: approvalId });
        const end = merchant === "sandbox-slow" ? "approved" : "reversed";
        await until(`${merchant} is ${end}`, async () => {
          const own = { token: agent.key, id: transactionId };
          const { transaction } = await world.api.ok("getPayment", 200, own);
          return transaction.status === end ? transaction : null;
        });
        expect(await flagged(agent, { merchant }), merchant).to.deep.equal([]);
      }
    });

    it("time_window holds by the clock on the wall of its zone", async () => {
      const agent = await world.agent();
      const params = windowAround(new Date());
      await rules({ type: "time_window", params });
      expect(await flagged(agent)).to.deep.equal(["time_window"]);
      await rules({ type: "time_window", params: { ...params, outside: false } });
      expect(await flagged(agent)).to.deep.equal([]);
    });

    it("a disabled rule holds nothing", async () => {
      const agent = await world.agent();
      await rules({ type: "amount_above", params: { amountCents: 0 }, enabled: false });
      expect(await flagged(agent)).to.deep.equal([]);
    });

    it("a replay is the first answer's payment, whatever the rules say by then", async () => {
      await rules();
      const agent = await world.agent();
      const body = cardPayment({ idempotencyKey: randomUUID() });
      const first = await world.api.ok("createPayment", 201, { token: agent.key, body });
      await rules({ type: "amount_above", params: { amountCents: 0 } });
      const again = await world.api.ok("createPayment", 200, { token: agent.key, body });
      expect(again).to.deep.equal({ ...first, replayed: true });
      const held = await agent.pay();
      expect(flags(held)).to.deep.equal(["amount_above"]);
    });
  });
}

describe("payments under the rules of project and team", () => {
  it("each type is told once, the project's first", async () => {
    const world = await newWorld();
    const { projectId, teamId } = world.organization;
    const { token } = world;
    const rail = { type: "rail", params: { anyOf: ["card"] } };
    const above = { type: "amount_above", params: { amountCents: 50 } };
    const named = { type: "recipient", params: { anyOf: ["shop"] } };
    const ofTeam = { rules: [above, named, rail], version: 1 };
    await world.api.ok("setTeamApprovalRules", 200, { token, id: teamId, body: ofTeam });
    const ofProject = { rules: [rail, above], version: 1 };
    await world.api.ok("setProjectApprovalRules", 200, { token, id: projectId, body: ofProject });
    const { approval } = await (await world.agent()).pay();
    expect(approval?.flaggedByRuleTypes).to.deep.equal(["rail", "amount_above", "recipient"]);

    const { team } = await world.api.ok("createTeam", 201, { token, body: { name: "Other" } });
    const other = await (await world.agent({ teamId: team.id })).pay();
    expect(other.approval?.flaggedByRuleTypes, "the other team's").to.deep.equal(["rail", "amount_above"]);
  });
});
