import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import type { Restrictions } from "../../src/domain/rules/restrictions.ts";
import { McpCaller } from "../mcp/support.ts";
import { expectBooksAgree } from "../support/books.ts";
import { restricting } from "../support/restrictions.ts";
import { cardPayment, elevate, newWorld, type TestAgent, times, type World } from "../support/world.ts";

const LEVELS = {
  project: ["getProjectRestrictions", "setProjectRestrictions"],
  team: ["getTeamRestrictions", "setTeamRestrictions"],
  agent: ["getAgentRestrictions", "setAgentRestrictions"],
} as const;
type Level = keyof typeof LEVELS;

const ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7";

const never = (...names: string[]): Partial<Restrictions> => ({ recipients: { only: null, never: names } });

describe("restrictions of projects, teams and agents", () => {
  let world: World;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    agent = await world.agent();
    await elevate(world);
  });

  function targetOf(level: Level) {
    const { projectId, teamId } = world.organization;
    return { token: world.token, id: { project: projectId, team: teamId, agent: agent.id }[level] };
  }

  /** Replaces all lists of a level. */
  async function restrict(level: Level, lists: Partial<Restrictions> = {}): Promise<void> {
    const [get, set] = LEVELS[level];
    const target = targetOf(level);
    const { version } = await world.api.ok(get, 200, target);
    await world.api.ok(set, 200, { ...target, body: restricting(lists, version) });
  }

  for (const level of ["project", "team", "agent"] as const) {
    it(`a ${level}'s deny as soon as they are set, before limits; replays keep their answer`, async () => {
      const [get, set] = LEVELS[level];
      const target = targetOf(level);
      expect(await world.api.ok(get, 200, target)).to.deep.equal(restricting({}, 1));
      const body = cardPayment({ merchant: "Evil" });
      const paid = await world.api.ok("createPayment", 201, { token: agent.key, body });
      expect(paid.transaction.status).to.equal("approved");
      await restrict(level, never("EVIL"));
      await world.api.refused(set, 409, "STALE_RESTRICTIONS", { ...target, body: restricting({}, 1) });
      const { transaction } = await agent.pay({ merchant: "evil ", amountCents: 9_999_999 });
      expect(transaction).to.include({
        status: "denied",
        denialCode: "RECIPIENT_NOT_ALLOWED",
        denialReason: `The ${level}'s restrictions do not allow this recipient.`,
      });
      const replayed = await world.api.ok("createPayment", 200, { token: agent.key, body });
      expect(replayed.transaction).to.include({ id: paid.transaction.id, status: "approved" });
      await restrict(level);
      expect((await agent.pay({ merchant: "Evil" })).transaction.status).to.equal("approved");
    });
  }

  it("wallet payments and dry runs are judged by them, too, and each code is told", async () => {
    const wallet = { rail: "wallet", merchant: undefined, recipient: ADDRESS.toLowerCase() };
    await restrict("project", { rails: { only: ["card"] } });
    expect((await agent.pay(wallet)).transaction.denialCode).to.equal("RAIL_NOT_ALLOWED");
    await restrict("project", never(ADDRESS));
    expect((await agent.pay(wallet)).transaction.denialCode).to.equal("RECIPIENT_NOT_ALLOWED");
    const merchantCategories = { only: null, never: [], uncoded: "deny" } as const;
    await restrict("project", { merchantCategories });
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const { checkPayment } = operations;
    const asked = { rail: "card", merchant: "shop", amountCents: 1 };
    const checked = await mcp.ok(checkPayment.output, "check_payment", asked);
    expect(checked).to.include({ decision: "denied", denialCode: "MERCHANT_CATEGORY_NOT_ALLOWED" });
    const coded = await mcp.ok(checkPayment.output, "check_payment", { ...asked, merchantCategory: "5734" });
    expect(coded.decision).to.equal("approved");
    await mcp.close();
    await restrict("project");
  });

  it("a payment on hold that is forbidden by then is failed by its approval, and released", async () => {
    const own = await world.agent({ autoApprovalThresholdCents: 0 });
    const [held, free] = [await own.hold({ merchant: "Late" }), await own.hold({ merchant: "Early" })];
    await restrict("team", never("late"));
    const { token } = world;
    const { approval } = await world.api.ok("approveApproval", 200, { token, id: held.approvalId });
    expect(approval.resolution).to.equal("failed");
    const of = { token: own.key, id: held.transactionId };
    const { transaction } = await world.api.ok("getPayment", 200, of);
    expect(transaction).to.include({ status: "failed", denialCode: "RECIPIENT_NOT_ALLOWED" });
    await world.api.ok("approveApproval", 200, { token, id: free.approvalId });
    await restrict("team");
    await expectBooksAgree(world, own);
  });

  it("rules of the same container set before, between and after leave them in force", async () => {
    const target = targetOf("team");
    const rules = async (amountCents: number) => {
      const { version } = await world.api.ok("getTeamApprovalRules", 200, target);
      const above = { type: "amount_above", params: { amountCents } };
      await world.api.ok("setTeamApprovalRules", 200, { ...target, body: { rules: [above], version } });
    };
    await rules(50);
    await restrict("team", never("evil"));
    await rules(500);
    expect((await agent.pay({ merchant: "Evil" })).transaction.denialCode).to.equal("RECIPIENT_NOT_ALLOWED");
    expect((await agent.pay({ amountCents: 100 })).transaction.status).to.equal("approved");
    await restrict("team");
    expect((await agent.pay({ merchant: "Evil", amountCents: 501 })).approval).not.to.equal(null);
  });

  /** Paths of what is wrong with a replacement. */
  async function wrongIn(lists: Partial<Restrictions>) {
    const asked = { ...targetOf("team"), body: restricting(lists) };
    const { issues } = await world.api.refused("setTeamRestrictions", 400, "VALIDATION_FAILED", asked);
    return issues?.map(({ path }) => path);
  }

  it("lists hold up to 500 entries that payments can name; `only` is never empty", async () => {
    expect(await wrongIn({ recipients: { only: [], never: [] } })).to.deep.equal(["recipients.only"]);
    expect(await wrongIn({ rails: { only: [] } })).to.deep.equal(["rails.only"]);
    const many = times(501, (index) => `name ${index}`);
    expect(await wrongIn(never(...many))).to.deep.equal(["recipients.never"]);
    const categories = { only: null, never: ["12"], uncoded: "allow" } as const;
    expect(await wrongIn({ merchantCategories: categories })).to.deep.equal(["merchantCategories.never.0"]);
  });

  it("200 payments race a PUT: none is judged by older lists after newer ones have judged", async () => {
    const agents = await Promise.all(times(4, () => world.agent()));
    const paying = agents.flatMap((each) =>
      times(50, () => each.pay({ merchant: "Race", amountCents: 1, idempotencyKey: randomUUID() })),
    );
    await Promise.race(paying);
    await restrict("project", never("race"));
    const late = await Promise.all(agents.map((each) => each.pay({ merchant: "Race", amountCents: 1 })));
    expect(late.map(({ transaction }) => transaction.denialCode)).to.deep.equal(
      agents.map(() => "RECIPIENT_NOT_ALLOWED"),
    );
    await Promise.all(paying);
    const ids = agents.map(({ id }) => id);
    const found = await world.service.db
      .collection("transactions")
      .find({ agentId: { $in: ids } })
      .sort({ agentId: 1, sequence: 1 })
      .toArray();
    expect(found.length).to.equal(204);
    for (const id of ids) {
      const codes = found
        .filter(({ agentId }) => agentId === id)
        .map(({ denialCode }) => denialCode !== null);
      expect(codes.slice(codes.indexOf(true)).every(Boolean), codes.join(" ")).to.equal(true);
    }
    await restrict("project");
  });
});
