import { expect } from "chai";
import { DateTime } from "luxon";
import { expectBooksAgree } from "../support/books.ts";
import { someOrAll } from "../support/soak.ts";
import { type Fields, newWorld, type Paid, type TestAgent, until, type World } from "../support/world.ts";

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

    it("a disabled rule in the shadow holds nothing, and the payment says what it would have held", async () => {
      const agent = await world.agent();
      const above = { type: "amount_above", params: { amountCents: 500 }, shadow: true };
      const wouldHaveFlagged = async (fields: Fields) => {
        const { approval, transaction } = await agent.pay(fields);
        const id = transaction.id;
        const read = await world.api.ok("getTransaction", 200, { token: world.token, id });
        return [
          approval?.flaggedByRuleTypes,
          transaction.wouldHaveFlagged,
          read.transaction.wouldHaveFlagged,
        ];
      };
      await rules(
        { ...above, enabled: false },
        { type: "rail", params: { anyOf: ["card"] }, enabled: false },
      );
      const flag = ["amount_above"];
      expect(await wouldHaveFlagged({ amountCents: 501 })).to.deep.equal([undefined, flag, flag]);
      expect(await wouldHaveFlagged({ amountCents: 500 })).to.deep.equal([undefined, undefined, undefined]);
      // Enabled, it acts, whatever its shadow says.
      await rules({ ...above, enabled: true });
      expect(await wouldHaveFlagged({ amountCents: 501 })).to.deep.equal([flag, undefined, undefined]);
      await expectBooksAgree(world, agent);
    });

    it("velocity and duplicate count what was paid before they were set, each agent's own alone", async () => {
      await rules();
      const [agent, other] = [await world.agent(), await world.agent()];
      await agent.pay({ amountCents: 9 });
      await rules(
        { type: "velocity", params: { count: 2, windowSeconds: 3_600 } },
        { type: "duplicate", params: { windowSeconds: 3_600 } },
      );
      expect(await flagged(agent, { amountCents: 9, merchant: "SHOP" })).to.deep.equal(["duplicate"]);
      expect(await flagged(agent, { amountCents: 8 })).to.deep.equal(["velocity"]);
      expect(await flagged(other, { amountCents: 9 })).to.deep.equal([]);
    });

    it("new_recipient holds until a payment settled, soon or late; a reversal unlearns nothing", async () => {
      await rules();
      const agent = await world.agent();
      await agent.pay({ merchant: "Known before" });
      await rules({ type: "new_recipient", params: {} });
      expect(await flagged(agent, { merchant: "KNOWN before" })).to.deep.equal([]);
      const { token } = world;
      const ends = { Stranger: "approved", "sandbox-slow": "approved", "sandbox-reverse": "reversed" };
      const settling = Object.entries(ends).map(async ([merchant, end]) => {
        const { approvalId, transactionId } = await agent.hold({ merchant });
        await world.api.ok("approveApproval", 200, { token, id: approvalId });
        await until(`${merchant} is ${end}`, async () => {
          const own = { token: agent.key, id: transactionId };
          const { transaction } = await world.api.ok("getPayment", 200, own);
          return transaction.status === end ? transaction : null;
        });
        expect(await flagged(agent, { merchant: merchant.toUpperCase() }), merchant).to.deep.equal([]);
      });
      await Promise.all(settling);
      const declined = await agent.hold({ merchant: "sandbox-decline" });
      await world.api.ok("approveApproval", 200, { token, id: declined.approvalId });
      expect(await flagged(agent, { merchant: "sandbox-decline" })).to.deep.equal(["new_recipient"]);
      expect(await flagged(await world.agent(), { merchant: "Stranger" })).to.deep.equal(["new_recipient"]);
    });

    it("time_window holds by the clock on the wall of its zone", async () => {
      const agent = await world.agent();
      const params = windowAround(new Date());
      await rules({ type: "time_window", params });
      expect(await flagged(agent)).to.deep.equal(["time_window"]);
      await rules({ type: "time_window", params: { ...params, outside: false } });
      expect(await flagged(agent)).to.deep.equal([]);
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
