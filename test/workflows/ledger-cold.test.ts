import { randomUUID } from "node:crypto";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { expect } from "chai";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalActors } from "../../src/actors/temporal.ts";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { createPaymentEffects } from "../../src/payments/effects.ts";
import { SUBMIT_UPDATE } from "../../src/messages/agent.ts";
import { type KnownRevisions, NOTHING_KNOWN } from "../../src/messages/ledger.ts";
import { testPayloads } from "../support/payloads.ts";
import { times } from "../support/world.ts";
import { StagedAgent } from "./support/agent.ts";
import { MemoryProjections, MemoryRail, silentPublishing, SETTLED, VOUCHED } from "./support/doubles.ts";
import { eventsOf, eventsUntil, silentTasksOf } from "./support/history.ts";
import { StagedAccount, StagedLedger, withAccount } from "./support/ledger.ts";
import { ledgersOver, type Stage } from "./support/stage.ts";

const UPDATES = 3;

/** Waits as long as it takes until a worker is there; a server gives up after some seconds. */
const tell = (
  handle: WorkflowHandle,
  command: unknown,
  ...known: readonly KnownRevisions[]
): Promise<unknown> =>
  handle.executeUpdate<unknown, [unknown, ...unknown[]]>(SUBMIT_UPDATE, { args: [[command], ...known] });
const tellLedger = (handle: WorkflowHandle, command: unknown): Promise<unknown> =>
  tell(handle, command, NOTHING_KNOWN);

describe("workflows ledger and agent: met anew by a worker that knows nothing of them", () => {
  let connection: Connection;
  let native: NativeConnection;
  let client: Client;
  const taskQueue = `cold-${randomUUID()}`;

  before(async () => {
    const address = process.env["TEST_TEMPORAL_ADDRESS"] ?? "";
    const namespace = process.env["TEST_TEMPORAL_NAMESPACE"] ?? "";
    connection = await Connection.connect({ address });
    native = await NativeConnection.connect({ address });
    client = new Client({ connection, namespace, ...testPayloads().client });
  });
  after(async () => {
    await connection.close();
    await native.close();
  });

  /** A worker that keeps no workflow between two tasks, while the work is done. */
  async function withColdWorker<T>(work: () => Promise<T>): Promise<T> {
    const { namespace } = client.options;
    const worker = await Worker.create({
      connection: native,
      namespace,
      taskQueue,
      ...testPayloads().worker,
      workflowBundle: WORKFLOW_BUNDLE,
      maxCachedWorkflows: 0,
      activities: {},
    });
    return worker.runUntil(work);
  }

  /** Lets updates wait together until a worker is there. */
  async function answeredTogether<T>(
    handle: WorkflowHandle,
    update: () => Promise<T>,
  ): Promise<readonly T[]> {
    const before = (await accepted(handle)).length;
    const waiting = Promise.all(times(UPDATES, update));
    const replies = await withColdWorker(() => waiting);
    const together = (await accepted(handle)).slice(before);
    expect(
      [together.length, new Set(together).size],
      "all in one task, else this shows nothing",
    ).to.deep.equal([UPDATES, 1]);
    return replies;
  }

  it("updates that waited together are answered, and the ledger replays and goes on", async () => {
    const stage = newStage(client, taskQueue);
    const { account, ledger } = await withColdWorker(() =>
      withAccount(stage, {}, { sweepAfterSeconds: 600 }),
    );
    const pay = () => tellLedger(ledger.handle, account.paying(account.request(100)));
    await answeredTogether(ledger.handle, pay);
    await withColdWorker(async () => {
      await pay();
      expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 400, open: 4 });
    });
    await ledger.handle.terminate("the scene is over");
  });

  it("the same after the ledger's first task alone", async () => {
    const stage = newStage(client, taskQueue);
    const ledger = await StagedLedger.start(stage);
    await withColdWorker(() => ledger.state());
    const account = new StagedAccount(ledger);
    await answeredTogether(ledger.handle, () => tellLedger(ledger.handle, account.opening()));
    await withColdWorker(async () => {
      await tellLedger(ledger.handle, account.paying(account.request(100)));
      expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 100, open: 1 });
      expect(silentTasksOf(await eventsOf(ledger.handle))).to.deep.equal([]);
    });
    await ledger.handle.terminate("the scene is over");
  });

  it("the same after a timer that found nothing to do, since all was confirmed in time", async () => {
    const stage = newStage(client, taskQueue);
    const { account, ledger } = await withColdWorker(async () => {
      const staged = await withAccount(stage, {}, { sweepAfterSeconds: 1 });
      await staged.account.payThrough(100);
      const { revision } = (await staged.account.booked()) ?? { revision: 0 };
      const { agentId } = staged.account;
      await staged.ledger.submit({ kind: "confirm_records", records: [{ agentId, revision }] });
      await eventsUntil(staged.ledger.handle, isTimeOver);
      return staged;
    });
    await answeredTogether(ledger.handle, () =>
      tellLedger(ledger.handle, account.paying(account.request(100))),
    );
    await withColdWorker(async () => {
      expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 300, open: 3 });
      expect(silentTasksOf(await eventsOf(ledger.handle))).to.deep.equal([]);
    });
    await ledger.handle.terminate("the scene is over");
  });

  it("the same for an agent's actor, after its first task and after a timer with nothing to do", async () => {
    const stage = newStage(client, taskQueue);
    const agent = await StagedAgent.start(stage, {
      firstKey: { keyId: "akey_1", lineageId: null, deliverableUntil: Date.now() + 3_600_000 },
      settings: { sweepAfterSeconds: 1 },
    });
    await withColdWorker(() => agent.state());
    const rename = () => tell(agent.handle, { kind: "rename", name: randomUUID() });
    await answeredTogether(agent.handle, rename);
    await withColdWorker(async () => {
      const { revision } = await agent.state();
      await agent.submit({ kind: "confirm_record", revision }, { kind: "confirm_followed", revision });
      await eventsUntil(agent.handle, isTimeOver);
    });
    await answeredTogether(agent.handle, rename);
    await withColdWorker(async () => {
      expect((await agent.state()).revision).to.equal(1 + 2 * UPDATES);
      expect(silentTasksOf(await eventsOf(agent.handle))).to.deep.equal([]);
    });
    await agent.handle.terminate("the scene is over");
  });
});

/** By the events of a workflow: a timer has fired, and its task is done. */
const isTimeOver: Parameters<typeof eventsUntil>[1] = (events) => {
  const fired = events.findIndex((event) => event.timerFiredEventAttributes);
  return fired >= 0 && events.slice(fired).some((event) => event.workflowTaskCompletedEventAttributes);
};

/** For each update that a workflow has taken, the task that it was in. */
const accepted = async (handle: WorkflowHandle): Promise<readonly string[]> =>
  (await eventsOf(handle)).flatMap(({ workflowExecutionUpdateAcceptedEventAttributes: taken }) =>
    taken ? [String(taken.acceptedRequestSequencingEventId)] : [],
  );

function newStage(client: Client, taskQueue: string): Stage {
  const actors = new TemporalActors(new TemporalCalls(client, taskQueue));
  const rail = new MemoryRail(() => SETTLED);
  const projections = new MemoryProjections();
  const effects = createPaymentEffects({
    rails: { card: rail, wallet: rail },
    projections,
    workflows: actors,
    publisher: silentPublishing,
    ledgers: ledgersOver(actors, { projections, proofs: VOUCHED, workflows: actors }),
    proofs: VOUCHED,
    clock: () => new Date(),
    monotonicMs: () => performance.now(),
  });
  return { client, intruder: client, taskQueue, scene: randomUUID(), rail, projections, actors, effects, notSwept: [] };
}
