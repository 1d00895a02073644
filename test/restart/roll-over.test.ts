import { expect } from "chai";
import {
  AGENT_SETTINGS,
  AGENT_WORKFLOW,
  type AgentInput,
  agentWorkflowId,
} from "../../src/messages/agent.ts";
import { REMEMBERED_KEYS_MAX } from "../../src/domain/agent/state.ts";
import { sharedService, type TestService } from "../support/service.ts";
import { Load, replay } from "./support/load.ts";
import { Tenant } from "./support/tenant.ts";

const CLIENTS = 24;
/** Every fifth request of a client is a retry of an earlier one, by this client or another. */
const RETRY_EVERY = 5;
/** Enough that the first keys are no longer remembered by the actor, and several roll-overs fall into them. */
const PAYMENTS = REMEMBERED_KEYS_MAX + 300;
const EVENTS_PER_RUN = 80;
const ROLL_OVERS_MIN = 4;
const LOAD_MS = 400_000;
/** What a payment may take where the machine is not busy, and how many times the usual one where it is. */
const SLOWEST_MS = 1_000;
const SLOWEST_TIMES = 5;
const SWEPT_MS = 120_000;

describe("An agent's actor that rolls over under load", function () {
  this.timeout(900_000);
  let service: TestService;
  let tenant: Tenant;

  before(async () => {
    service = await sharedService();
    const { baseUrl, connections, env } = service;
    tenant = await Tenant.create({ baseUrl, env, mongodbUri: connections.addresses.mongodbUri });
  });

  /** A new agent whose actor rolls over far sooner than others. */
  async function createAgent() {
    const created = await tenant.createAgent({ budgetCents: 1_000_000 });
    const { id, name, projectId, teamId, budgetCents } = created.agent;
    const policy = {
      budgetCents,
      autoApprovalThresholdCents: null,
      perTransactionLimitCents: null,
      dailySpendLimitCents: null,
      hourlyVelocityLimit: null,
      dailyVelocityLimit: null,
    };
    const { organizationId } = tenant.organization;
    const profile = { organizationId, projectId, teamId, agentId: id, name };
    const settings = { ...AGENT_SETTINGS, rollOverAfterEvents: EVENTS_PER_RUN };
    const input: AgentInput = { start: { kind: "create", profile, policy }, settings };
    const { addresses, temporal } = service.connections;
    await temporal.workflow.start(AGENT_WORKFLOW, {
      workflowId: agentWorkflowId(id),
      taskQueue: addresses.taskQueue,
      workflowIdConflictPolicy: "TERMINATE_EXISTING",
      args: [input],
    });
    return created;
  }

  /** How often the actor has rolled over: each run names the one before it. */
  async function rollOvers(agentId: string): Promise<number> {
    const { addresses, temporal } = service.connections;
    const workflowId = agentWorkflowId(agentId);
    let runId = "";
    for (let count = 0; ; count += 1) {
      const { history } = await temporal.workflowService.getWorkflowExecutionHistory({
        namespace: addresses.temporalNamespace,
        execution: { workflowId, runId },
        maximumPageSize: 1,
      });
      const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
      runId = started?.continuedExecutionRunId ?? "";
      if (runId === "") return count;
    }
  }

  it("loses no payment, makes none twice, even by old or forgotten keys, and nobody waits", async () => {
    const { agent, apiKey } = await createAgent();
    const load = new Load({
      apiKeys: [apiKey],
      apis: [service.api],
      clients: CLIENTS,
      name: "roll-over",
      retryEvery: RETRY_EVERY,
      comeAgain: true,
    });
    await load.untilPaid(PAYMENTS, LOAD_MS);
    const sent = await load.stop();
    expect(sent.filter(({ status }) => status !== 201)).to.deep.equal([]);
    expect(load.retries).to.be.greaterThan(PAYMENTS / RETRY_EVERY / 2);
    const rolledOver = await rollOvers(agent.id);
    expect(rolledOver).to.be.at.least(ROLL_OVERS_MIN);

    await replay(service.api, [...sent.slice(0, 100), ...sent.slice(-100)]);
    await tenant.expectBooksToAgree(SWEPT_MS);
    // A stall at a roll-over would hold up a batch each time; now and then, another program may have had the processor.
    const usualMs = sent.map(({ ms }) => ms).toSorted((a, b) => a - b)[sent.length >> 1] ?? 0;
    const slow = sent.filter(({ ms }) => ms > Math.max(SLOWEST_MS, SLOWEST_TIMES * usualMs));
    expect(slow.length).to.be.at.most((CLIENTS * rolledOver) / 2);
  });
});
