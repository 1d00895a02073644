import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { expect } from "chai";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { Budgets } from "../../server/actors/budgets.ts";
import { TemporalCalls } from "../../server/actors/calls.ts";
import { TemporalActors } from "../../server/actors/temporal.ts";
import { AGENT_SETTINGS } from "../../src/messages/agent.ts";
import { payCommand, StagedAgent } from "./support/agent.ts";
import { gateway, type Stage } from "./support/stage.ts";
import { MemoryProjections, MemoryRail, nobody, SETTLED, VOUCHED } from "./support/doubles.ts";
import { createPaymentEffects } from "../../activities/effects.ts";
import { eventsOf } from "./support/history.ts";

const UPDATES = 3;

describe("workflow agent: met anew by a worker that knows nothing of it", () => {
  let connection: Connection;
  let native: NativeConnection;
  let client: Client;
  const taskQueue = `cold-${randomUUID()}`;

  before(async () => {
    const address = process.env["TEST_TEMPORAL_ADDRESS"] ?? "";
    connection = await Connection.connect({ address });
    native = await NativeConnection.connect({ address });
    client = new Client({ connection, namespace: process.env["TEST_TEMPORAL_NAMESPACE"] ?? "" });
  });
  after(async () => {
    await connection.close();
    await native.close();
  });

  /** A worker that keeps no workflow between two tasks, while the work is done. */
  async function withColdWorker<T>(work: () => Promise<T>): Promise<T> {
    const { namespace } = client.options;
    const options = {
      connection: native,
      namespace,
      taskQueue,
      workflowBundle: WORKFLOW_BUNDLE,
      maxCachedWorkflows: 0,
    };
    const worker = await Worker.create({ ...options, activities: {} });
    return worker.runUntil(work);
  }

  it("updates that waited together for a worker are answered, and the actor replays and goes on", async () => {
    const stage = newStage(client, taskQueue);
    const agent = await StagedAgent.start(stage, { ...AGENT_SETTINGS, sweepAfterSeconds: 600 });
    await withColdWorker(() => agent.state());
    const waiting = Promise.all(
      Array.from({ length: UPDATES }, () => agent.submit(payCommand(agent.request(100)))),
    );
    await withColdWorker(() => waiting);
    const events = await eventsOf(agent.handle);
    const together = events.filter(
      ({ workflowExecutionUpdateAcceptedEventAttributes: accepted }) => accepted,
    );
    const tasks = new Set(
      together.map(({ workflowExecutionUpdateAcceptedEventAttributes: accepted }) =>
        String(accepted?.acceptedRequestSequencingEventId),
      ),
    );
    expect([together.length, tasks.size], "all of them in one task, else this shows nothing").to.deep.equal([
      UPDATES,
      1,
    ]);
    await withColdWorker(async () => {
      await agent.submit(payCommand(agent.request(100)));
      expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 400, open: 4 });
    });
    await agent.handle.terminate("the scene is over");
  });
});

const clock = () => new Date();

function newStage(client: Client, taskQueue: string): Stage {
  const actors = new TemporalActors(new TemporalCalls(client, taskQueue), () => Promise.resolve(false));
  const rail = new MemoryRail(() => SETTLED);
  const projections = new MemoryProjections();
  const rails = { card: rail, wallet: rail };
  const caps = new Budgets((place, commands) => actors.submitToBudget(place, commands));
  const effects = createPaymentEffects({
    rails,
    projections,
    workflows: actors,
    telling: nobody,
    caps,
    proofs: VOUCHED,
    clock,
    monotonicMs: () => performance.now(),
    agents: gateway(actors),
  });
  return { client, taskQueue, scene: randomUUID(), rail, projections, actors, effects };
}
