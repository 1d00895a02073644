import { Client, Connection } from "@temporalio/client";
import type { temporal } from "@temporalio/proto";
import { expect } from "chai";
import { agentWorkflowId } from "../../src/messages/agent.ts";
import { ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { rollOut } from "../../server/admin/roll-out.ts";
import { Api } from "../support/api.ts";
import { requiredSetting } from "../support/shared-engines.ts";
import { shortOrSoak } from "../support/soak.ts";
import { Load, replay } from "./support/load.ts";
import { roleEnvironment, Roles } from "./support/roles.ts";
import { Tenant } from "./support/tenant.ts";

const SWEPT_MS = 120_000;
const KNOWN_MS = 60_000;
/** Payments of each step. */
const PAYMENTS = shortOrSoak(20, 300);
const CLIENTS = 6;

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

describe("Two versions of the workers at once", () => {
  const env = roleEnvironment();
  const namespace = requiredSetting("TEST_TEMPORAL_NAMESPACE");
  const roles = new Roles(env);
  let connection: Connection;
  let client: Client;

  before(async () => {
    connection = await Connection.connect({ address: requiredSetting("TEST_TEMPORAL_ADDRESS") });
    client = new Client({ connection, namespace });
  });
  after(async () => {
    await roles.stop();
    await connection.close();
  });

  const start = (buildId: string) => roles.startWorker({ WORKER_BUILD_ID: buildId });

  /** The build that was in its place; `patienceMs`: its workers may only have been started. */
  async function ramp(buildId: string, percentage: number | null, patienceMs = KNOWN_MS) {
    const options = { buildId, percentage, patienceMs, onProgress: () => undefined };
    return (await rollOut(env, options)).previousBuildId;
  }
  const makeCurrent = (buildId: string) => ramp(buildId, null);

  /** Of all runs of a workflow, from the newest to the first. */
  async function eventsOf(workflowId: string): Promise<readonly HistoryEvent[]> {
    const events: HistoryEvent[] = [];
    for (let runId: string | undefined; ;) {
      const run = (await client.workflow.getHandle(workflowId, runId).fetchHistory()).events ?? [];
      events.push(...run);
      const before = run[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? "";
      if (before === "") return events;
      runId = before;
    }
  }

  it("under load one is rolled out and back: no payment is lost or made twice, no task fails", async () => {
    const one = await start("one");
    const [{ baseUrl }] = await Promise.all([roles.startServer(), makeCurrent("one")]);
    const tenant = await Tenant.create({ baseUrl, mongodbUri: env.MONGODB_URI, env });
    const agents = await Promise.all([
      tenant.createAgent({ budgetCents: 10_000_000 }),
      tenant.createAgent({ budgetCents: 10_000_000 }),
    ]);
    const { apiKey: asking } = await tenant.createAgent({ autoApprovalThresholdCents: 0 });
    const held = await tenant.api.pay(asking, { amountCents: 500 });
    const apiKeys = agents.map(({ apiKey }) => apiKey);
    const load = new Load({
      apiKeys,
      apis: [new Api(baseUrl)],
      clients: CLIENTS,
      name: "versions",
      comeAgain: true,
    });
    await load.untilPaid(PAYMENTS);

    const early = await ramp("two", null, 0).catch(String);
    expect(early).to.match(/No workers with WORKER_BUILD_ID=two poll for all tasks \([^\n]+$/);
    const two = await start("two");
    await load.untilPaid(PAYMENTS);
    await ramp("two", 50);
    await load.untilPaid(PAYMENTS);
    expect(await makeCurrent("two")).to.equal("one");
    await load.untilPaid(PAYMENTS);
    expect(await one.end("SIGTERM"), "nothing needs the old version any more").to.include({ code: 0 });
    await load.untilPaid(PAYMENTS);
    // It was begun under the old version.
    expect(await tenant.approve(held.approval?.id ?? "")).to.equal("approved");

    await start("one");
    await makeCurrent("one");
    await load.untilPaid(PAYMENTS);
    expect(await two.end("SIGTERM")).to.include({ code: 0 });
    await load.untilPaid(PAYMENTS);
    const sent = await load.stop();

    expect(sent.filter(({ status }) => status !== 201)).to.deep.equal([]);
    await replay(tenant.api, sent);
    await tenant.expectBooksToAgree(SWEPT_MS);
    const { projectId } = tenant.organization;
    const actors = [ledgerWorkflowId(projectId), ...agents.map(({ agent }) => agentWorkflowId(agent.id))];
    const events = (await Promise.all(actors.map(eventsOf))).flat();
    const failed = events.flatMap(
      ({ workflowTaskFailedEventAttributes: task }) => task?.failure?.message ?? [],
    );
    expect(failed).to.deep.equal([]);
    const builds = events.flatMap(
      ({ workflowTaskCompletedEventAttributes: task }) => task?.deploymentVersion?.buildId ?? [],
    );
    expect([...new Set(builds)].toSorted(), "both have decided").to.deep.equal(["one", "two"]);
  });
});
