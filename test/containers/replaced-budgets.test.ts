import { EventEmitter, once } from "node:events";
import { expect } from "chai";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import {
  ACCOUNT_QUERY,
  type AccountQueryInput,
  type AccountView,
  CAPS_QUERY,
  type CapsQueryInput,
  type CapsView,
  ledgerWorkflowId,
} from "../../src/messages/ledger.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { askRaise } from "../support/raises.ts";
import { codeOf } from "../support/contract-api.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { elevate, newWorld, type TestAgent, until, type World } from "../support/world.ts";

const CAP = 1_000;
/** A ledger does itself what no server has done 10 s after it was decided. */
const SWEPT_MS = 120_000;

describe("a budget that was replaced", () => {
  let service: TestService;
  let world: World;
  let budgets: TestBudgets;
  /** Whether servers and workers can write down what was decided. */
  let isWriting = true;
  /** What writing waits for. */
  let mayWrite: Promise<unknown> = Promise.resolve();
  const unlessBroken = async <T>(write: () => Promise<T>): Promise<T> => {
    await mayWrite;
    if (!isWriting) throw new ActorUnavailable("no database");
    return write();
  };
  before(async () => {
    service = await startTestService({
      decorateEffects: (plain) => ({
        ...plain,
        projections: {
          writePayment: (profile, payment) => plain.projections.writePayment(profile, payment),
          endOf: (transactionId) => plain.projections.endOf(transactionId),
          paymentOf: (transactionId) => plain.projections.paymentOf(transactionId),
          closedAgent: (...of) => plain.projections.closedAgent(...of),
          textsOf: (transactionId) => plain.projections.textsOf(transactionId),
          writeAgent: (summary) => plain.projections.writeAgent(summary),
          writeAccount: (summary) => unlessBroken(() => plain.projections.writeAccount(summary)),
          writeCaps: (projectId, caps) => unlessBroken(() => plain.projections.writeCaps(projectId, caps)),
        },
      }),
    });
  });
  after(() => service?.stop());
  beforeEach(async () => {
    isWriting = true;
    mayWrite = Promise.resolve();
    world = await newWorld(service);
    budgets = new TestBudgets(world);
  });

  const putTeam = (capCents: number | null, version: number, named: readonly [TestAgent, number][]) =>
    world.api.call("setTeamBudget", {
      token: world.token,
      id: world.organization.teamId,
      body: {
        capCents,
        agents: named.map(([{ id }, budgetCents]) => ({ agentId: id, budgetCents })),
        version,
      },
    });
  const policyOf = ({ id }: TestAgent) =>
    world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id });

  async function paid(): Promise<[TestAgent, TestAgent]> {
    const pair: [TestAgent, TestAgent] = [await world.agent(), await world.agent()];
    for (const agent of pair) expect(await outcomeOf(agent, 100)).to.equal("approved");
    return pair;
  }

  it("a grant that died before its record is finished by the next reader, and raises once", async () => {
    const { token } = world;
    const agent = await world.agent({ budgetCents: 600, spendLimits: [{ period: "day", limitCents: 500 }] });
    const id = await askRaise(world, agent, { amountCents: 900 });
    await elevate(world);
    isWriting = false;
    const granting = await world.api.call("grantRaiseRequest", { token, id, body: { endsAt: null } });
    expect(granting.status).to.equal(503);
    isWriting = true;
    const { raiseRequest } = await world.api.ok("getRaiseRequest", 200, { token, id });
    expect(raiseRequest.status).to.equal("granted");
    expect(raiseRequest.raised.map(({ limit, toCents }) => [limit, toCents])).to.deep.equal([
      ["budget", 900],
      ["day", 900],
    ]);
    expect(raiseRequest.resolvedBy).to.include({ userId: world.organization.userId });
    expect((await policyOf(agent)).budgetCents).to.equal(900);
    await world.api.refused("grantRaiseRequest", 409, "RAISE_ALREADY_RESOLVED", { token, id });
  });

  it("not written down: no 200; cap and budgets hold all the same, and the ledger writes them", async () => {
    const [one, other] = await paid();
    isWriting = false;
    const put = await putTeam(CAP, 1, [
      [one, 5_000],
      [other, 6_000],
    ]);
    expect([put.status, codeOf(put)]).to.deep.equal([503, "SERVICE_UNAVAILABLE"]);
    expect(await outcomeOf(one, CAP - 200 + 1)).to.equal("TEAM_CAP_EXCEEDED");
    expect(await budgets.team()).to.deep.include({ capCents: CAP, version: 2 });
    expect(await policyOf(one)).to.include({ budgetCents: 5_000, version: 2 });
    isWriting = true;
    const { agents, teams } = collectionsOf(service.db);
    await until(
      "the records show it",
      async () => {
        const team = await teams.findOne({ _id: world.organization.teamId });
        const agent = await agents.findOne({ _id: other.id });
        return team?.cap?.capCents === CAP && agent?.policy.budgetCents === 6_000 ? true : null;
      },
      SWEPT_MS,
    );
    expect(await outcomeOf(other, CAP - 200)).to.equal("approved");
  });

  describe("or changed, is answered as it was decided, though it has changed since:", () => {
    let events: EventEmitter;
    let inForce: (agent: TestAgent, version: number) => Promise<unknown>;
    beforeEach(async () => {
      await elevate(world);
      events = new EventEmitter();
      mayWrite = once(events, "written");
      const { projectId } = world.organization;
      const ledger = service.connections.temporal.workflow.getHandle(ledgerWorkflowId(projectId));
      inForce = (agent, version) =>
        until(`version ${String(version)} is in force`, async () => {
          const asked = { agentId: agent.id, now: Date.now() };
          const account = await ledger.query<AccountView, [AccountQueryInput]>(ACCOUNT_QUERY, asked);
          return account.policyVersion === version ? true : null;
        });
    });

    it("an agent's policy, by its team's budget", async () => {
      const agent = await world.agent({ budgetCents: 1_000 });
      const patching = world.api.ok("updateAgentBudgetPolicy", 200, {
        token: world.token,
        id: agent.id,
        body: { version: 1, dailySpendLimitCents: 500 },
      });
      await inForce(agent, 2);
      const putting = putTeam(null, 1, [[agent, 900_000]]);
      await inForce(agent, 3);
      events.emit("written");
      const patched = await patching;
      expect(patched).to.include({ version: 2, budgetCents: 1_000, dailySpendLimitCents: 500 });
      expect(patched.usage.remainingCents).to.equal(1_000);
      expect((await putting).status).to.equal(200);
      const after = { version: 3, budgetCents: 900_000, dailySpendLimitCents: 500 };
      expect(await policyOf(agent)).to.include(after);
    });

    it("a project's budget, by the next one", async () => {
      const { projectId, teamId } = world.organization;
      const putProject = (capCents: number | null, version: number) =>
        world.api.call("setProjectBudget", {
          token: world.token,
          id: projectId,
          body: { capCents, teams: [{ teamId, capCents }], version },
        });
      const ledger = service.connections.temporal.workflow.getHandle(ledgerWorkflowId(projectId));
      const decided = (version: number) =>
        until(`the cap of version ${String(version)}`, async () => {
          const caps = await ledger
            .query<CapsView, [CapsQueryInput]>(CAPS_QUERY, { now: Date.now() })
            .catch(() => null);
          return caps?.project.cap.version === version ? true : null;
        });
      await world.agent();
      const first = putProject(5_000, 1);
      await decided(2);
      const second = putProject(null, 2);
      await decided(3);
      events.emit("written");
      const { body, status } = await first;
      expect(status, JSON.stringify(body)).to.equal(200);
      expect(body).to.deep.include({ capCents: 5_000, version: 2, teams: [{ teamId, capCents: 5_000 }] });
      expect((await second).status).to.equal(200);
      expect(await budgets.project()).to.include({ capCents: null, version: 3 });
    });

    it("a team's budget, by the next one", async () => {
      const agent = await world.agent({ budgetCents: 1_000 });
      const first = putTeam(5_000, 1, [[agent, 2_000]]);
      await inForce(agent, 2);
      const second = putTeam(null, 2, [[agent, 3_000]]);
      await inForce(agent, 3);
      events.emit("written");
      const { body, status } = await first;
      expect(status, JSON.stringify(body)).to.equal(200);
      expect(body).to.deep.include({ capCents: 5_000, version: 2 });
      expect(body).to.deep.include({ agents: [{ agentId: agent.id, budgetCents: 2_000 }] });
      expect(body).to.nested.include({ "usage.remainingCents": 5_000 });
      expect((await second).status).to.equal(200);
      expect(await budgets.team()).to.include({ capCents: null, version: 3 });
    });
  });
});
