import { expect } from "chai";
import { heeded } from "../../activities/budgets.ts";
import { MongoProjections } from "../../activities/projections.ts";
import { EventJournal } from "../../activities/journal.ts";
import { agentGateway } from "../../server/actors/gateway.ts";
import { ActorUnavailable, AgentMailboxes } from "../../server/actors/mailbox.ts";
import { TemporalCalls } from "../../server/actors/calls.ts";
import { hadCapsIn } from "../../server/actors/had-caps.ts";
import { TemporalActors } from "../../server/actors/temporal.ts";
import { collectionsOf } from "../../server/collections.ts";
import type { BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import { agentWorkflowId } from "../../src/messages/agent.ts";
import { ANSWER_MS, timed } from "../support/in-time.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { codeOf } from "../support/contract-api.ts";
import { elevate, newWorld, type TestAgent, times, type World } from "../support/world.ts";

const CAP = 1_000;
/** What others are answered within. */
const USUAL_ANSWER_MS = 3_500;

type Step = "before" | "after";

/** A moment that comes when it is told to. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  const controller = new AbortController();
  const { signal } = controller;
  const opened = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  return { opened, open: () => controller.abort() };
}

const undisturbed = () => undefined;

/** It waits longer than others do, and is answered in time all the same. */
async function expectLate503(call: () => Promise<{ readonly status: number }>): Promise<void> {
  const { ms, ownMs, value } = await timed(call());
  expect(value.status).to.equal(503);
  expect(ms).to.be.above(USUAL_ANSWER_MS);
  expect(ownMs).to.be.below(ANSWER_MS);
}

describe("a budget that was decided and not carried through", () => {
  let service: TestService;
  let world: World;
  let budgets: TestBudgets;
  /** Stands before and after each command that the server puts to a budget. */
  let disturb: (step: Step, command: BudgetCommand, reply: BudgetReply | null) => Promise<void> | undefined;
  before(async () => {
    service = await startTestService({
      decorateMeans: (means) => ({
        ...means,
        budgets: {
          async submit(place, command) {
            await disturb("before", command, null);
            const reply = await means.budgets.submit(place, command);
            await disturb("after", command, reply);
            return reply;
          },
        },
      }),
    });
  });
  after(() => service?.stop());
  beforeEach(async () => {
    disturb = undisturbed;
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

  /** The server dies at this point of a replacement, but for its process: nothing of it is done after. */
  function dieAfter(kind: BudgetReply["kind"]): void {
    disturb = (step, _command, reply) =>
      step === "after" && reply?.kind === kind
        ? Promise.reject(new ActorUnavailable("the server is gone"))
        : undefined;
  }

  /** Agents that have paid, and were told that they need not ask. */
  async function exempted(): Promise<[TestAgent, TestAgent]> {
    const pair: [TestAgent, TestAgent] = [await world.agent(), await world.agent()];
    for (const agent of pair) expect(await outcomeOf(agent, 100)).to.equal("approved");
    return pair;
  }

  for (const died of ["replaced", "enrolled"] as const) {
    it(`server gone once ${died}: the team's cap and budgets in GET hold for the next payment`, async () => {
      const [one, other] = await exempted();
      dieAfter(died);
      const put = await putTeam(CAP, 1, [
        [one, 5_000],
        [other, 6_000],
      ]);
      expect([put.status, codeOf(put)]).to.deep.equal([503, "SERVICE_UNAVAILABLE"]);
      disturb = undisturbed;
      expect(await budgets.team()).to.deep.include({ capCents: CAP, version: 2 });
      expect(await outcomeOf(one, CAP - 200 + 1)).to.equal("TEAM_CAP_EXCEEDED");
      expect(await policyOf(one)).to.include({ budgetCents: 5_000, version: 2 });
      expect(await policyOf(other)).to.include({ budgetCents: 6_000, version: 2 });
      expect(await outcomeOf(other, CAP - 200)).to.equal("approved");
    });

    it(`server gone once ${died}: the project's cap in GET holds for the next payment`, async () => {
      const [one, other] = await exempted();
      const there = await world.agent({ teamId: await budgets.newTeam() });
      expect(await outcomeOf(there, 300)).to.equal("approved");
      const { usage: _usage, ...read } = await budgets.project();
      dieAfter(died);
      const body = { ...read, capCents: CAP };
      const request = { token: world.token, id: world.organization.projectId, body };
      await world.api.refused("setProjectBudget", 503, "SERVICE_UNAVAILABLE", request);
      disturb = undisturbed;
      expect(await budgets.project()).to.deep.include({ capCents: CAP, version: 2 });
      expect(await outcomeOf(there, CAP - 500 + 1)).to.equal("PROJECT_CAP_EXCEEDED");
      expect(await outcomeOf(one, CAP - 500)).to.equal("approved");
      expect(await outcomeOf(other, 1)).to.equal("PROJECT_CAP_EXCEEDED");
    });
  }

  it("PUT and GET are 503 within 5 s while agents can't be told; once GET answers, it holds", async () => {
    const [one, other] = await exempted();
    const { open, opened } = gate();
    disturb = (step, { kind }) => (step === "before" && kind === "delivered" ? opened : undefined);
    await expectLate503(() =>
      putTeam(CAP, 1, [
        [one, 10_000],
        [other, 10_000],
      ]),
    );
    const read = { token: world.token, id: world.organization.teamId };
    await expectLate503(() => world.api.call("getTeamBudget", read));
    open();
    expect(await budgets.team()).to.include({ capCents: CAP, version: 2 });
    expect(await outcomeOf(one, CAP)).to.equal("TEAM_CAP_EXCEEDED");
  });

  it("a budget set by hand meanwhile is not undone by the replacement's, which comes before it", async () => {
    const agent = await world.agent({ budgetCents: 1_000 });
    dieAfter("replaced");
    expect((await putTeam(null, 1, [[agent, 900_000]])).status).to.equal(503);
    disturb = undisturbed;
    await elevate(world);
    const patch = (version: number) =>
      world.api.call("updateAgentBudgetPolicy", {
        token: world.token,
        id: agent.id,
        body: { version, budgetCents: 100 },
      });
    expect(codeOf(await patch(1))).to.equal("VERSION_CONFLICT");
    expect(await policyOf(agent)).to.include({ budgetCents: 900_000, version: 2 });
    expect((await patch(2)).status).to.equal(200);
    expect((await budgets.team()).agents).to.deep.equal([{ agentId: agent.id, budgetCents: 100 }]);
    expect(await policyOf(agent)).to.include({ budgetCents: 100, version: 3 });
  });

  it("an agent whose actor was terminated blocks no budget, and the cap holds for the others", async () => {
    const [here, gone] = await exempted();
    await service.connections.temporal.workflow
      .getHandle(agentWorkflowId(gone.id))
      .terminate("by an operator");
    const named: [TestAgent, number][] = [
      [here, 5_000],
      [gone, 5_000],
    ];
    for (const version of times(2, (index) => index + 1)) {
      const put = await putTeam(CAP, version, named);
      expect(put.status, JSON.stringify(put.body)).to.equal(200);
    }
    expect(await budgets.team()).to.include({ capCents: CAP, version: 3 });
    expect(await budgets.project()).to.include({ version: 1 });
    expect(await policyOf(here)).to.include({ budgetCents: 5_000 });
    expect(await outcomeOf(here, CAP)).to.equal("TEAM_CAP_EXCEEDED");
  });

  it("a replacement of the next version is stale or wholly in force: no change is dropped", async () => {
    const agent = await world.agent({ budgetCents: 1_000 });
    const { open, opened } = gate();
    disturb = (step, command) =>
      step === "before" && command.kind === "replace_team" && command.version === 2 ? opened : undefined;
    // Sent first, and decided last: it was compared with the budget from before the other one, unless that overtook it.
    const second = putTeam(null, 2, [[agent, 1_000]]);
    expect((await putTeam(null, 1, [[agent, 500]])).status).to.equal(200);
    expect((await policyOf(agent)).budgetCents).to.equal(500);
    open();
    const answer = await second;
    if (answer.status !== 200) expect(codeOf(answer)).to.equal("STALE_BUDGET");
    else expect((await policyOf(agent)).budgetCents).to.equal(1_000);
    expect((await budgets.team()).version).to.equal(answer.status === 200 ? 3 : 2);
  });

  it("an agent's news are confirmed only once its record shows them: a write that failed is none", async () => {
    const agent = await world.agent();
    let isWriting = false;
    const agents = gatewayTo(service, () => isWriting);
    const delivery = { agentId: agent.id, epoch: 2, asks: false, budgetCents: 700 };
    const first = await heeded(agents, delivery).then(
      () => "confirmed",
      (error: unknown) => error,
    );
    expect(first).to.be.instanceOf(ActorUnavailable);
    isWriting = true;
    await heeded(agents, delivery);
    const record = await collectionsOf(service.db).agents.findOne({ _id: agent.id });
    expect(record?.policy.budgetCents).to.equal(700);
  });
});

/** A process of its own that speaks to the agents, whose writes of records may fail. */
function gatewayTo({ connections: { addresses, db, temporal } }: TestService, writes: () => boolean) {
  const actors = new TemporalActors(new TemporalCalls(temporal, addresses.taskQueue), hadCapsIn(db));
  const projections = new MongoProjections(db, new EventJournal(db));
  const mailboxes = new AgentMailboxes({
    submit: (agentId, commands) => actors.submit(agentId, commands),
    report: () => Promise.resolve(),
    writeSummary: (agentId, summary) =>
      writes() ? projections.writeAgentSummary(agentId, summary) : Promise.reject(new Error("no database")),
    hurry: () => undefined,
    confirmAfterMs: 60_000,
    onError: () => undefined,
  });
  return agentGateway(collectionsOf(db), mailboxes);
}
