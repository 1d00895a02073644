import { expect } from "chai";
import { archive } from "../support/life.ts";
import { secondService } from "../support/own-service.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { shortOrSoak } from "../support/soak.ts";
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

/** Agents that pay at once under one cap, and payments of each. */
const PAYERS = shortOrSoak(4, 20);
const PAYMENTS = shortOrSoak(4, 10);

/** The limits themselves, their order and their sums are the ledger's, whose own tests hold them. */
describe("caps of projects and teams over HTTP", () => {
  let world: World;
  let budgets: TestBudgets;
  beforeEach(async () => {
    world = await newWorld();
    budgets = new TestBudgets(world);
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
      increases: [],
    });
    expect((await budgets.project()).usage.remainingCents).to.equal(0);
  });

  it("payments of many agents at once under a cap for a quarter of them: exactly so many pass", async () => {
    const agents = await Promise.all(times(PAYERS, () => world.agent()));
    const fitting = (PAYERS * PAYMENTS) / 4;
    await budgets.setTeam({ capCents: fitting * 100 });
    await budgets.setProject({ capCents: fitting * 140 });
    const paying = agents.flatMap((agent) => times(PAYMENTS, () => outcomeOf(agent, 100)));
    const outcomes = tally(await Promise.all(paying));
    expect(outcomes).to.deep.equal({ approved: fitting, TEAM_CAP_EXCEEDED: 3 * fitting });
  });

  it("replacements race payments: approvals never pass the highest cap that was set", async () => {
    const agents = await Promise.all(times(PAYERS, () => world.agent()));
    await budgets.setTeam({ capCents: 1_000 });
    const { agents: named } = await budgets.team();
    const put = (capCents: number, version: number) =>
      world.api.call("setTeamBudget", {
        token: world.token,
        id: world.organization.teamId,
        body: { capCents, agents: named, version },
      });
    const [outcomes] = await Promise.all([
      Promise.all(agents.flatMap((agent) => times(PAYMENTS, () => outcomeOf(agent, 100)))),
      Promise.all(times(8, (index) => put(500 + 100 * index, 2 + (index >> 2)))),
    ]);
    const approved = outcomes.filter((outcome) => outcome === "approved").length;
    expect(approved).to.be.within(5, 12);
    expect((await budgets.team()).usage.spentCents).to.equal(approved * 100);
  });
});

describe("what is given back under caps", () => {
  let world: World;
  let elsewhere: Awaited<ReturnType<typeof secondService>>;
  before(async () => {
    world = await newWorld();
    elsewhere = await secondService(world.service);
  });
  after(() => elsewhere?.stop());

  interface Held {
    readonly transactionId: string;
    readonly approvalId: string;
  }

  /** Takes all that is left of the caps, and gives it back. */
  const RELEASES: Readonly<Record<string, (agent: TestAgent, ids: Held) => Promise<unknown>>> = {
    "a denial": (_agent, { approvalId: id }) =>
      world.api.ok("denyApproval", 200, { token: world.token, id, body: { feedback: "No." } }),
    "a cancellation": (agent, { transactionId: id }) =>
      world.api.ok("cancelPayment", 200, { token: agent.key, id }),
    "an archive": async (agent) => {
      await elevate(world);
      await archive(world, agent);
    },
    "an approval that fails": async (agent, { approvalId }) => {
      await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
      await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
    },
  };

  it("is there for an agent on another server at once, all of it, at every level", async () => {
    const budgets = new TestBudgets(world);
    const other = await world.agent();
    let left = 1_000;
    await budgets.setTeam({ capCents: left });
    await budgets.setProject({ capCents: left });

    /** Another agent pays through another server; the rest is there, too, since the next one takes all of it. */
    async function expectThere(what: string): Promise<void> {
      const api = new ContractApi(elsewhere.baseUrl);
      const body = cardPayment({ amountCents: 100 });
      const { transaction } = await api.ok("createPayment", 201, { token: other.key, body });
      expect(transaction.denialCode ?? transaction.status, what).to.equal("approved");
      left -= 100;
    }

    for (const [what, release] of Object.entries(RELEASES)) {
      const agent = await world.agent({ autoApprovalThresholdCents: 0 });
      const held = await agent.hold({ amountCents: left });
      expect(await outcomeOf(other, 1), what).to.equal("TEAM_CAP_EXCEEDED");
      expect((await budgets.project()).usage).to.include({ remainingCents: 0 });
      await release(agent, held);
      await expectThere(what);
    }
    const payer = await world.agent();
    expect(await outcomeOf(payer, left, { merchant: "sandbox-decline" })).to.equal("CARD_DECLINED");
    await expectThere("a declined card");
    const { transaction } = await payer.pay({ amountCents: left, merchant: "sandbox-reverse" });
    await until("it is reversed", async () => {
      const read = await world.api.ok("getPayment", 200, { token: payer.key, id: transaction.id });
      return read.transaction.status === "reversed" ? true : null;
    });
    await expectThere("a reversal");
    expect((await budgets.team()).usage.remainingCents).to.equal(left);
  });
});
