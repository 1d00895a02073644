import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { collectionsOf } from "../../src/store/collections.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { agentWorkflowId } from "../../src/messages/agent.ts";
import { approvalWorkflowId } from "../../src/messages/approval.ts";
import { ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { organizationWorkflowId } from "../../src/messages/organization.ts";
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

  it("an agent's: its keys and end are a coded 503, never 500; the ledger pays and pauses on", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 5_000 });
    const { approvalId, transactionId } = await agent.hold({ amountCents: 5_001 });
    await terminated(agentWorkflowId(agent.id));
    const { token } = world;
    const id = agent.id;
    const kept: readonly Asked[] = [
      ["updateAgent", { token, id, body: { name: "Renamed" } }],
      ["revokeAgentKey", { token, id }],
      ["mintAgentKey", { token, id }],
      ["archiveAgent", { token, id }],
    ];
    expect(await answersTo(kept)).to.deep.equal(unavailable(kept));
    const agents = [{ agentId: id, budgetCents: 8_000 }];
    const decided: readonly Asked[] = [
      pay(agent),
      ["updateAgentBudgetPolicy", { token, id, body: { version: 1, budgetCents: 9_000 } }],
      [
        "setTeamBudget",
        { token, id: world.organization.teamId, body: { capCents: 9_000, agents, version: 2 } },
      ],
      ["pauseAgent", { token, id }],
      ["resumeAgent", { token, id }],
      ["approveApproval", { token, id: approvalId }],
      ["getAgent", { token, id }],
      ["getAgentBudgetPolicy", { token, id }],
      ["getPayment", { token: agent.key, id: transactionId }],
      ["getApproval", { token, id: approvalId }],
      ["listPayments", { token: agent.key }],
    ];
    for (const [operation, answer] of Object.entries(await answersTo(decided)))
      expect(answer, operation).to.be.oneOf(["200", "201"]);
  });

  it("a project's ledger: all about its money is a coded 503, and its records are read on", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 5_000 });
    const { approvalId, transactionId } = await agent.hold({ amountCents: 5_001 });
    await agent.pay();
    await terminated(ledgerWorkflowId(world.organization.projectId));
    await expectNothingPaid(agent, { approvalId, transactionId });
  });

  it("a project's ledger that the engine forgot is never begun anew: still 503", async () => {
    const { projects, teams } = collectionsOf(world.service.db);
    const { projectId, teamId } = world.organization;
    // The engine forgets an actor days after its end. This one was never begun, which is the same to it.
    const [project, team] = [
      await projects.findOne({ _id: projectId }),
      await teams.findOne({ _id: teamId }),
    ];
    if (project === null || team === null)
      throw new Error("the organization has lost its default containers");
    const forgotten = TEST_ACCESS_PROOFS.proven("project", { ...project, _id: randomUUID() });
    const inIt = { ...team, _id: randomUUID(), projectId: forgotten._id };
    const under = TEST_ACCESS_PROOFS.proven("team", inIt);
    await Promise.all([projects.insertOne(forgotten), teams.insertOne(under)]);
    const { token } = world;
    const asked: readonly Asked[] = [
      ["getProjectBudget", { token, id: forgotten._id }],
      ["setProjectBudget", { token, id: forgotten._id, body: { capCents: null, teams: [], version: 1 } }],
      ["createAgent", { token, body: { name: "Agent", teamId: under._id, budgetCents: 1 } }],
    ];
    const answers = await answersTo(asked);
    expect(Object.values(answers).map((answer) => answer.slice(0, 3))).to.deep.equal(["503", "503", "503"]);
  });

  async function expectNothingPaid(
    agent: TestAgent,
    { approvalId, transactionId }: { readonly approvalId: string; readonly transactionId: string },
  ): Promise<void> {
    const { projectId, teamId } = world.organization;
    const { token } = world;
    const { id } = agent;
    const teams = [{ teamId, capCents: null }];
    const agents = [{ agentId: id, budgetCents: 10_000 }];
    const changes: readonly Asked[] = [
      pay(agent),
      ["approveApproval", { token, id: approvalId }],
      ["denyApproval", { token, id: approvalId, body: { feedback: "no" } }],
      ["cancelPayment", { token: agent.key, id: transactionId }],
      ["updateAgentBudgetPolicy", { token, id, body: { version: 1, budgetCents: 9_000 } }],
      ["pauseAgent", { token, id }],
      ["resumeAgent", { token, id }],
      ["setProjectBudget", { token, id: projectId, body: { capCents: 4_000, teams, version: 1 } }],
      ["setTeamBudget", { token, id: teamId, body: { capCents: 1, agents, version: 1 } }],
    ];
    expect(await answersTo(changes)).to.deep.equal(unavailable(changes));
    const reads: readonly Asked[] = [
      ["getAgent", { token, id }],
      ["getPayment", { token: agent.key, id: transactionId }],
      ["getApproval", { token, id: approvalId }],
      ["listPayments", { token: agent.key }],
    ];
    for (const [operation, answer] of Object.entries(await answersTo(reads)))
      expect(answer, operation).to.equal("200");
    // The actor revokes it all the same, and its ledger pays nothing: only that it has followed can't be answered.
    const revoked: readonly Asked[] = [["revokeAgentKey", { token, id }]];
    expect(await answersTo(revoked)).to.deep.equal(unavailable(revoked));
  }

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
