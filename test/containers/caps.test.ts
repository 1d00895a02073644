import { expect } from "chai";
import { archive } from "../support/life.ts";
import { secondService } from "../support/own-service.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { shortOrSoak, someOrAll } from "../support/soak.ts";
import { ContractApi } from "../support/contract-api.ts";
import {
  cardPayment,
  elevate,
  newWorld,
  tally,
  type TestAgent,
  times,
  until,
  type World,
} from "../support/world.ts";

/** Agents that pay at once under one cap. */
const PAYERS = shortOrSoak(8, 20);
const MAX_CENTS = 1_000_000_000_000;

const feedback = { feedback: "No." };

describe("caps of projects and teams over HTTP", () => {
  let world: World;
  let budgets: TestBudgets;
  beforeEach(async () => {
    world = await newWorld();
    budgets = new TestBudgets(world);
  });

  /** An answer does not wait for ever for what a busy machine takes its time with. */
  async function decide(id: string) {
    const { token } = world;
    const { approval } = await world.api.ok("approveApproval", 200, { token, id });
    if (approval.resolution !== "executing") return approval.resolution;
    return until("the payment is made or fails", async () => {
      const { approval: now } = await world.api.ok("getApproval", 200, { token, id });
      return now.resolution === "executing" ? null : (now.resolution ?? null);
    });
  }

  const rich = (fields = {}): Promise<TestAgent> => world.agent({ budgetCents: MAX_CENTS, ...fields });

  /** At the cap, one cent below and above it. */
  const limits: readonly (readonly [name: string, capCents: number, usedCents: number])[] = [
    ["0", 0, 0],
    ["1", 1, 0],
    ["1,000 with 600 used", 1_000, 600],
    ["all of 1,000 used", 1_000, 1_000],
    ["the maximum", MAX_CENTS, 0],
    ["the maximum with 1 used", MAX_CENTS, 1],
  ];
  const atLevels = (["team", "project"] as const).flatMap((level) =>
    limits.map(([name, capCents, usedCents]) => ({ level, name, capCents, usedCents })),
  );
  for (const { capCents, level, name, usedCents } of someOrAll(atLevels, 4)) {
    it(`${level} cap of ${name}: what is left passes, one cent more is denied`, async () => {
      const [one, other] = [await rich(), await rich()];
      if (level === "team") await budgets.setTeam({ capCents });
      else await budgets.setProject({ capCents });
      if (usedCents > 0) expect(await outcomeOf(one, usedCents)).to.equal("approved");
      const remaining = capCents - usedCents;
      if (remaining < MAX_CENTS) {
        const { transaction } = await other.pay({ amountCents: remaining + 1 });
        expect([transaction.status, transaction.denialCode, transaction.denialDetails]).to.deep.equal([
          "denied",
          `${level.toUpperCase()}_CAP_EXCEEDED`,
          { limit: capCents, remaining, resetsAt: null },
        ]);
      }
      if (remaining > 1) {
        expect(await outcomeOf(other, remaining - 1)).to.equal("approved");
        expect(await outcomeOf(one, 2)).to.equal(`${level.toUpperCase()}_CAP_EXCEEDED`);
      }
      if (remaining > 0) expect(await outcomeOf(other, 1)).to.equal("approved");
      expect(await outcomeOf(one, 1)).to.equal(`${level.toUpperCase()}_CAP_EXCEEDED`);
      const { usage } = level === "team" ? await budgets.team() : await budgets.project();
      expect(usage).to.deep.equal({ spentCents: capCents, reservedCents: 0, remainingCents: 0 });
    });
  }

  it("without a cap the agents' total may exceed any one amount's maximum, and is told", async () => {
    for (const agent of [await rich(), await rich()]) {
      expect(await outcomeOf(agent, MAX_CENTS)).to.equal("approved");
    }
    const usage = { spentCents: 2 * MAX_CENTS, reservedCents: 0, remainingCents: null };
    expect((await budgets.team()).usage).to.deep.equal(usage);
    expect((await budgets.setTeam({ capCents: MAX_CENTS })).usage.remainingCents).to.equal(0);
  });

  it("every limit of the agent's own is named before the caps, the team's before the project's", async () => {
    const agent = await world.agent({ budgetCents: 100 });
    await budgets.setTeam({ capCents: 0 });
    await budgets.setProject({ capCents: 0 });
    await elevate(world);
    const limited = [
      [{ perTransactionLimitCents: 0 }, "PER_TRANSACTION_LIMIT_EXCEEDED"],
      [{ perTransactionLimitCents: null, budgetCents: 0 }, "BUDGET_EXCEEDED"],
      [{ budgetCents: 100, dailySpendLimitCents: 0 }, "DAILY_SPEND_LIMIT_EXCEEDED"],
      [{ dailySpendLimitCents: null, hourlyVelocityLimit: 0 }, "HOURLY_VELOCITY_EXCEEDED"],
      [{ hourlyVelocityLimit: null, dailyVelocityLimit: 0 }, "DAILY_VELOCITY_EXCEEDED"],
      [{ dailyVelocityLimit: null }, "TEAM_CAP_EXCEEDED"],
    ] as const;
    for (const [index, [change, code]] of limited.entries()) {
      const request = { token: world.token, id: agent.id, body: { ...change, version: index + 1 } };
      await world.api.ok("updateAgentBudgetPolicy", 200, request);
      expect(await outcomeOf(agent, 1)).to.equal(code);
    }
    await budgets.setTeam({ capCents: null });
    expect(await outcomeOf(agent, 1)).to.equal("PROJECT_CAP_EXCEEDED");
    await budgets.setProject({ capCents: null });
    expect(await outcomeOf(agent, 1)).to.equal("approved");
  });

  it("what a cap denied counts for nothing: no velocity, no day's spend, no amount at any level", async () => {
    const agent = await world.agent();
    await budgets.setTeam({ capCents: 99 });
    for (const _ of times(3, () => null)) await outcomeOf(agent, 100);
    const policy = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id: agent.id });
    expect(policy.usage).to.include({ spentCents: 0, reservedCents: 0, todayCents: 0 });
    expect(policy.usage).to.include({ lastHourCount: 0, todayCount: 0 });
    expect((await budgets.team()).usage).to.include({ spentCents: 0, reservedCents: 0 });
  });

  it("one that rules would hold, but that no cap takes, is denied and never held", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    await budgets.setTeam({ capCents: 99 });
    const { approval, transaction } = await agent.pay({ amountCents: 100 });
    expect([approval, transaction.denialCode]).to.deep.equal([null, "TEAM_CAP_EXCEEDED"]);
    const query = { agent_id: agent.id };
    const pending = await world.api.ok("listPendingApprovals", 200, { token: world.token, query });
    expect(pending.approvals).to.deep.equal([]);
    expect((await agent.hold({ amountCents: 99 })).approvalId).to.match(/^apr_/);
  });

  it("teams share their project's cap, and each keeps to its own", async () => {
    const there = await budgets.newTeam();
    const [one, other] = [await world.agent(), await world.agent({ teamId: there })];
    const { teamId } = world.organization;
    const teams = [
      { teamId, capCents: 800 },
      { teamId: there, capCents: 800 },
    ];
    await budgets.setProject({ capCents: 1_000, teams });
    expect(await outcomeOf(one, 801)).to.equal("TEAM_CAP_EXCEEDED");
    expect(await outcomeOf(one, 700)).to.equal("approved");
    expect(await outcomeOf(other, 301)).to.equal("PROJECT_CAP_EXCEEDED");
    expect(await outcomeOf(other, 300)).to.equal("approved");
    expect((await budgets.team(there)).usage).to.deep.equal({
      spentCents: 300,
      reservedCents: 0,
      remainingCents: 500,
    });
    expect((await budgets.project()).usage.remainingCents).to.equal(0);
  });

  it("a cap set later counts earlier spending, reversals and holds, also of stopped agents", async () => {
    const [one, paused, gone, other] = await Promise.all([
      world.agent({ autoApprovalThresholdCents: 500 }),
      world.agent(),
      world.agent(),
      world.agent(),
    ]);
    expect(await outcomeOf(one, 300)).to.equal("approved");
    expect(await outcomeOf(paused, 40)).to.equal("approved");
    expect(await outcomeOf(gone, 50)).to.equal("approved");
    expect(await outcomeOf(gone, 60, { merchant: "sandbox-decline" })).to.equal("CARD_DECLINED");
    await one.hold({ amountCents: 501 });
    await world.api.ok("pauseAgent", 200, { token: world.token, id: paused.id });
    await elevate(world);
    await archive(world, gone);
    await budgets.setProject({ capCents: 1_000 });
    expect(await outcomeOf(other, 110)).to.equal("PROJECT_CAP_EXCEEDED");
    expect(await outcomeOf(other, 109)).to.equal("approved");
    expect((await budgets.project()).usage).to.deep.equal({
      spentCents: 499,
      reservedCents: 501,
      remainingCents: 0,
    });
    expect((await budgets.team()).agents.map(({ agentId }) => agentId)).not.to.include(gone.id);
  });

  it("agents created, paused, resumed and archived under a cap keep to it", async () => {
    await budgets.setTeam({ capCents: 100 });
    const [one, two] = [await world.agent(), await world.agent()];
    expect(await outcomeOf(one, 60)).to.equal("approved");
    await world.api.ok("pauseAgent", 200, { token: world.token, id: one.id });
    expect(await outcomeOf(two, 41)).to.equal("TEAM_CAP_EXCEEDED");
    await world.api.ok("resumeAgent", 200, { token: world.token, id: one.id });
    expect(await outcomeOf(one, 30)).to.equal("approved");
    await elevate(world);
    await archive(world, one);
    const late = await world.agent();
    expect(await outcomeOf(late, 11)).to.equal("TEAM_CAP_EXCEEDED");
    expect(await outcomeOf(late, 10)).to.equal("approved");
  });

  it("a cap lowered below what is used undoes nothing, stops the next payment and shows 0 left", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 200 });
    await budgets.setTeam({ capCents: 1_000 });
    expect(await outcomeOf(agent, 100)).to.equal("approved");
    await agent.hold({ amountCents: 300 });
    const lowered = await budgets.setTeam({ capCents: 50 });
    expect(lowered.usage).to.deep.equal({ spentCents: 100, reservedCents: 300, remainingCents: 0 });
    const { transaction } = await agent.pay({ amountCents: 1 });
    expect(transaction.denialDetails).to.deep.equal({ limit: 50, remaining: 0, resetsAt: null });
    await budgets.setTeam({ capCents: 401 });
    expect(await outcomeOf(agent, 1)).to.equal("approved");
    expect(await outcomeOf(agent, 1)).to.equal("TEAM_CAP_EXCEEDED");
  });

  it("cleared, raised and set again, a cap knows what was spent meanwhile", async () => {
    const [one, two] = [await world.agent(), await world.agent()];
    await budgets.setTeam({ capCents: 100 });
    expect(await outcomeOf(one, 100)).to.equal("approved");
    await budgets.setTeam({ capCents: null });
    for (const agent of [one, two, one]) expect(await outcomeOf(agent, 200)).to.equal("approved");
    await budgets.setTeam({ capCents: 1_000 });
    expect(await outcomeOf(two, 301)).to.equal("TEAM_CAP_EXCEEDED");
    expect(await outcomeOf(two, 300)).to.equal("approved");
    expect((await budgets.team()).usage.remainingCents).to.equal(0);
  });

  it("approving checks the caps again, without the payment's own reservation", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    await budgets.setTeam({ capCents: 1_000 });
    const first = await agent.hold({ amountCents: 600 });
    const second = await agent.hold({ amountCents: 400 });
    await budgets.setTeam({ capCents: 600 });
    expect(await decide(second.approvalId)).to.equal("failed");
    expect(await decide(first.approvalId)).to.equal("approved");
    expect((await budgets.team()).usage).to.deep.equal({
      spentCents: 600,
      reservedCents: 0,
      remainingCents: 0,
    });
    const { transaction } = await world.api.ok("getPayment", 200, {
      token: agent.key,
      id: second.transactionId,
    });
    expect([transaction.status, transaction.denialCode]).to.deep.equal(["failed", "TEAM_CAP_EXCEEDED"]);
    expect(transaction.denialDetails).to.deep.equal({ limit: 600, remaining: 0, resetsAt: null });
  });

  it(`10 payments of each of ${PAYERS} agents at once under a cap for a quarter: exactly so many pass`, async () => {
    const agents = await Promise.all(times(PAYERS, () => world.agent()));
    const fitting = (PAYERS * 10) / 4;
    await budgets.setTeam({ capCents: fitting * 100 });
    await budgets.setProject({ capCents: fitting * 140 });
    const paying = agents.flatMap((agent) => times(10, () => outcomeOf(agent, 100)));
    const outcomes = tally(await Promise.all(paying));
    expect(outcomes).to.deep.equal({ approved: fitting, TEAM_CAP_EXCEEDED: 3 * fitting });
  });

  it("a cap set during payments is never passed, unless the payments already were above it", async () => {
    const agents = await Promise.all(times(8, () => world.agent()));
    const paying = agents.flatMap((agent) => times(5, () => outcomeOf(agent, 100)));
    const capping = budgets.setTeam({ capCents: 1_000 });
    const outcomes = await Promise.all(paying);
    const set = await capping;
    const { usage } = await budgets.team();
    const approved = outcomes.filter((outcome) => outcome === "approved").length;
    expect(usage).to.include({ spentCents: approved * 100, reservedCents: 0 });
    // What was approved before the cap stands; after it there is no more than fits.
    const before = set.usage.spentCents + set.usage.reservedCents;
    expect(usage.spentCents).to.be.at.most(Math.max(1_000, before));
    expect(await outcomeOf(agents[0] ?? (await world.agent()), 1_000)).to.equal("TEAM_CAP_EXCEEDED");
  });

  it("16 replacements race 60 payments: approvals never pass the highest cap that was set", async () => {
    const agents = await Promise.all(times(6, () => world.agent()));
    await budgets.setTeam({ capCents: 1_000 });
    const { agents: named } = await budgets.team();
    const put = (capCents: number, version: number) =>
      world.api.call("setTeamBudget", {
        token: world.token,
        id: world.organization.teamId,
        body: { capCents, agents: named, version },
      });
    const [outcomes] = await Promise.all([
      Promise.all(agents.flatMap((agent) => times(10, () => outcomeOf(agent, 100)))),
      Promise.all(times(16, (index) => put(500 + 100 * (index % 8), 2 + (index >> 3)))),
    ]);
    const approved = outcomes.filter((outcome) => outcome === "approved").length;
    expect(approved).to.be.within(5, 12);
    expect((await budgets.team()).usage.spentCents).to.equal(approved * 100);
  });
});

describe("what is given back under caps is there for others at once", () => {
  let world: World;
  let budgets: TestBudgets;
  let elsewhere: Awaited<ReturnType<typeof secondService>>;
  before(async () => {
    world = await newWorld();
    elsewhere = await secondService(world.service);
  });
  after(() => elsewhere?.stop());
  beforeEach(async () => {
    world = await newWorld();
    budgets = new TestBudgets(world);
  });

  const CAP = 1_000;

  /** Pays all of the caps as another agent through another server. */
  async function expectAllIsThere(other: TestAgent): Promise<void> {
    const api = new ContractApi(elsewhere.baseUrl);
    const body = cardPayment({ amountCents: CAP });
    const { transaction } = await api.ok("createPayment", 201, { token: other.key, body });
    expect(transaction.denialCode ?? transaction.status).to.equal("approved");
  }

  async function scene() {
    const [one, other] = [await world.agent({ autoApprovalThresholdCents: 0 }), await world.agent()];
    await budgets.setTeam({ capCents: CAP });
    await budgets.setProject({ capCents: CAP });
    return { one, other };
  }

  const holding: readonly (readonly [string, (agent: TestAgent, ids: Held) => Promise<unknown>])[] = [
    [
      "a denial",
      (_agent, { approvalId }) =>
        world.api.ok("denyApproval", 200, { token: world.token, id: approvalId, body: feedback }),
    ],
    [
      "a cancellation",
      (agent, { transactionId }) =>
        world.api.ok("cancelPayment", 200, { token: agent.key, id: transactionId }),
    ],
    [
      "an archive",
      async (agent) => {
        await elevate(world);
        await archive(world, agent);
      },
    ],
    [
      "an approval that fails",
      async (agent, { approvalId }) => {
        await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
        await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
      },
    ],
  ];
  for (const [name, release] of holding) {
    it(`${name}: its hold is free at every level for an agent on another server`, async () => {
      const { one, other } = await scene();
      const held = await one.hold({ amountCents: CAP });
      expect(await outcomeOf(other, 1)).to.equal("TEAM_CAP_EXCEEDED");
      expect((await budgets.project()).usage).to.include({ reservedCents: CAP, remainingCents: 0 });
      await release(one, held);
      await expectAllIsThere(other);
    });
  }

  it("a declined card: free as soon as its answer says so", async () => {
    const { other } = await scene();
    const payer = await world.agent();
    expect(await outcomeOf(payer, CAP, { merchant: "sandbox-decline" })).to.equal("CARD_DECLINED");
    await expectAllIsThere(other);
  });

  it("a reversal: free as soon as a caller can read it", async () => {
    const { other } = await scene();
    const payer = await world.agent();
    const { transaction } = await payer.pay({ amountCents: CAP, merchant: "sandbox-reverse" });
    await until("it is reversed", async () => {
      const read = await world.api.ok("getPayment", 200, { token: payer.key, id: transaction.id });
      return read.transaction.status === "reversed" ? true : null;
    });
    await expectAllIsThere(other);
  });
});

interface Held {
  readonly transactionId: string;
  readonly approvalId: string;
}
