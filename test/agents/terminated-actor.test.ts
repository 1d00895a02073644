import { expect } from "chai";
import { collectionsOf } from "../../server/collections.ts";
import { reconcileOn } from "../../server/admin/reconcile/reconcile.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { agentWorkflowId } from "../../src/messages/agent.ts";
import { approvalWorkflowId } from "../../src/messages/approval.ts";
import { budgetWorkflowId } from "../../src/messages/budget.ts";
import { organizationWorkflowId } from "../../src/messages/organization.ts";
import { TestBudgets } from "../support/budgets.ts";
import { codeOf } from "../support/contract-api.ts";
import { cardPayment, elevate, newWorld, type TestAgent, until, type World } from "../support/world.ts";

type Asked = readonly [OperationId, object];

const unavailable = (asked: readonly Asked[]) =>
  Object.fromEntries(asked.map(([id]) => [id, "503 SERVICE_UNAVAILABLE"]));

const pay = (agent: TestAgent): Asked => ["createPayment", { token: agent.key, body: cardPayment() }];

describe("an actor that an operator has ended", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const terminated = async (workflowId: string): Promise<void> => {
    await world.service.connections.temporal.workflow.getHandle(workflowId).terminate("by a test");
  };

  const answersTo = async (asked: readonly Asked[]) => {
    const answers: Record<string, string> = {};
    for (const [id, request] of asked) {
      const answer = await world.api.call(id, request);
      answers[id] = `${String(answer.status)} ${codeOf(answer) ?? ""}`.trim();
    }
    return answers;
  };

  it("an agent's: what needs it is a coded 503, never 500; its records are read on", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId, transactionId } = await agent.hold();
    await terminated(agentWorkflowId(agent.id));
    const { token } = world;
    const id = agent.id;
    const changes: readonly Asked[] = [
      pay(agent),
      ["approveApproval", { token, id: approvalId }],
      ["denyApproval", { token, id: approvalId, body: { feedback: "no" } }],
      ["cancelPayment", { token: agent.key, id: transactionId }],
      ["updateAgentBudgetPolicy", { token, id, body: { version: 1, budgetCents: 9_000 } }],
      ["updateAgent", { token, id, body: { name: "Renamed" } }],
      ["pauseAgent", { token, id }],
      ["resumeAgent", { token, id }],
      ["revokeAgentKey", { token, id }],
      ["mintAgentKey", { token, id }],
      ["archiveAgent", { token, id }],
    ];
    expect(await answersTo(changes)).to.deep.equal(unavailable(changes));
    const reads: readonly Asked[] = [
      ["getAgent", { token, id }],
      ["getAgentBudgetPolicy", { token, id }],
      ["getPayment", { token: agent.key, id: transactionId }],
      ["getApproval", { token, id: approvalId }],
      ["listPayments", { token: agent.key }],
    ];
    for (const [operation, answer] of Object.entries(await answersTo(reads))) {
      expect(answer, operation).to.be.oneOf(["200", "503 SERVICE_UNAVAILABLE"]);
    }
  });

  it("a project's budget: what it is to judge, and what is to change it, is a coded 503", async () => {
    const agent = await world.agent();
    const { projectId, teamId } = world.organization;
    const { token } = world;
    const { version } = await new TestBudgets(world).setProject({ capCents: 5_000 });
    const body = { capCents: 4_000, teams: [{ teamId, capCents: null }], version };
    await agent.pay();
    await terminated(budgetWorkflowId(projectId));
    const changes: readonly Asked[] = [
      pay(agent),
      ["setProjectBudget", { token, id: projectId, body }],
      [
        "setTeamBudget",
        {
          token,
          id: teamId,
          body: { capCents: 1, agents: [{ agentId: agent.id, budgetCents: 10_000 }], version: 1 },
        },
      ],
    ];
    expect(await answersTo(changes)).to.deep.equal(unavailable(changes));
    for (const answer of Object.values(
      await answersTo([
        ["getProjectBudget", { token, id: projectId }],
        ["getTeamBudget", { token, id: teamId }],
      ]),
    )) {
      expect(answer).to.be.oneOf(["200", "503 SERVICE_UNAVAILABLE"]);
    }
  });

  it("a capped project's budget that the engine forgot: still 503, and reconcile names it", async () => {
    const { connections, db, env } = world.service;
    const { projects } = collectionsOf(db);
    const { organizationId, projectId } = world.organization;
    const budgets = new TestBudgets(world);
    await budgets.setProject({ capCents: 5_000 });
    expect((await projects.findOne({ _id: projectId }))?.hadCaps).to.equal(true);
    // The engine forgets an actor days after its end. This one was never begun, which is the same to it.
    const id = await budgets.newProject();
    const agent = await world.agent({ teamId: await budgets.newTeam(id) });
    await projects.updateOne({ _id: id }, { $set: { hadCaps: true } });
    const { token } = world;
    const asked: readonly Asked[] = [
      pay(agent),
      ["getProjectBudget", { token, id }],
      ["setProjectBudget", { token, id, body: { capCents: null, teams: [], version: 1 } }],
    ];
    expect(await answersTo(asked)).to.deep.equal(unavailable(asked));
    const options = { organizationId, repair: false, patienceMs: 1, onProgress: () => undefined };
    const { differences } = await reconcileOn(connections, env, options);
    expect(differences.map(({ kind }) => kind)).to.include("budget_lost");
  });

  it("an approval's, or an organization's: what follows is no 500", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const [first, second] = [await agent.hold(), await agent.hold()];
    await until("both wait", async () => {
      await terminated(approvalWorkflowId(first.approvalId));
      await terminated(approvalWorkflowId(second.approvalId));
      return true;
    });
    await terminated(organizationWorkflowId(world.organization.organizationId)).catch(() => undefined);
    const { token } = world;
    const { email, password } = world.organization;
    const answers = await answersTo([
      ["approveApproval", { token, id: first.approvalId }],
      ["denyApproval", { token, id: second.approvalId, body: { feedback: "no" } }],
      ["getApproval", { token, id: first.approvalId }],
      ["signIn", { body: { email, password } }],
    ]);
    for (const [operation, answer] of Object.entries(answers)) {
      expect(answer, operation).to.be.oneOf(["200", "503 SERVICE_UNAVAILABLE"]);
    }
  });
});
