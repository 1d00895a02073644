import { endCallContext } from "../../src/lib/call-context.ts";
import { randomUUID } from "node:crypto";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { expect } from "chai";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalActors } from "../../src/actors/temporal.ts";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { createPaymentEffects } from "../../src/payments/effects.ts";
import { SUBMIT_UPDATE } from "../../src/messages/agent.ts";
import { type KnownRevisions, LEDGER_STATE_QUERY, NOTHING_KNOWN } from "../../src/messages/ledger.ts";
import { testPayloads } from "../support/payloads.ts";
import { times } from "../support/world.ts";
import { StagedAgent } from "./support/agent.ts";
import { MemoryProjections, MemoryRail, silentPublishing, SETTLED, VOUCHED } from "./support/doubles.ts";
import { eventsOf, eventsUntil, silentTasksOf } from "./support/history.ts";
import { StagedAccount, StagedLedger } from "./support/ledger.ts";
import { ledgersOver, type Stage } from "./support/stage.ts";

const UPDATES = 3;
const QUERIES = 6;

/** Waits as long as it takes until a worker is there; a server gives up after some seconds. */
const tell = (
  handle: WorkflowHandle,
  command: unknown,
  ...known: readonly KnownRevisions[]
): Promise<unknown> =>
  handle.executeUpdate<unknown, [unknown, ...unknown[]]>(SUBMIT_UPDATE, { args: [[command], ...known] });
const tellLedger = (handle: WorkflowHandle, command: unknown): Promise<unknown> =>
  tell(handle, command, NOTHING_KNOWN);

/** Pays from an account. */
const paidOf = (account: StagedAccount): Promise<unknown> =>
  tellLedger(account.ledger.handle, account.paying(account.request(100)));

/** Lets updates wait together until a worker is there. */
async function* answeredTogether(handle: WorkflowHandle, update: () => Promise<unknown>) {
  const before = (await accepted(handle)).length;
  const waiting = Promise.all(times(UPDATES, update));
  yield () => waiting;
  const together = (await accepted(handle)).slice(before);
  expect([together.length, new Set(together).size], "all in one task, else this shows nothing").to.deep.equal(
    [UPDATES, 1],
  );
}

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
    endCallContext(connection);
    endCallContext(native);
  });

  /** A worker that keeps no workflow between two tasks, or so many, while the work is done. */
  async function withColdWorker<T>(work: () => Promise<T>, cached = 0): Promise<T> {
    const { namespace } = client.options;
    const worker = await Worker.create({
      connection: native,
      namespace,
      taskQueue,
      ...testPayloads().worker,
      workflowBundle: WORKFLOW_BUNDLE,
      maxCachedWorkflows: cached,
      activities: {},
    });
    return worker.runUntil(work);
  }

  /** Plays scenes beside each other: what each yields is done while one worker for all of them is there. */
  async function playTogether(
    ...scenes: readonly AsyncGenerator<() => Promise<unknown>, void>[]
  ): Promise<void> {
    for (;;) {
      const turns = await Promise.all(scenes.map((scene) => scene.next()));
      const works = turns.flatMap(({ done, value }) => (done === true || value === undefined ? [] : [value]));
      if (works.length === 0) return;
      await withColdWorker(() => Promise.all(works.map((work) => work())));
    }
  }

  async function* ledgerWithAnAccount() {
    const stage = newStage(client, taskQueue);
    const ledger = await StagedLedger.start(stage, { sweepAfterSeconds: 600 });
    const account = new StagedAccount(ledger);
    yield () => ledger.submit(account.opening());
    const pay = () => tellLedger(ledger.handle, account.paying(account.request(100)));
    yield* answeredTogether(ledger.handle, pay);
    yield async () => {
      await pay();
      expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 400, open: 4 });
    };
    await ledger.handle.terminate("the scene is over");
  }

  async function* ledgerAfterItsFirstTask() {
    const stage = newStage(client, taskQueue);
    const ledger = await StagedLedger.start(stage);
    yield () => ledger.state();
    const account = new StagedAccount(ledger);
    yield* answeredTogether(ledger.handle, () => tellLedger(ledger.handle, account.opening()));
    yield async () => {
      await tellLedger(ledger.handle, account.paying(account.request(100)));
      expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 100, open: 1 });
      expect(silentTasksOf(await eventsOf(ledger.handle))).to.deep.equal([]);
    };
    await ledger.handle.terminate("the scene is over");
  }

  /** Its timer was cancelled, since all was confirmed in time. */
  async function* ledgerAfterATimer() {
    const stage = newStage(client, taskQueue);
    const ledger = await StagedLedger.start(stage, { sweepAfterSeconds: 1 });
    const account = new StagedAccount(ledger);
    yield async () => {
      await ledger.submit(account.opening());
      await account.payThrough(100);
      const { revision } = (await account.booked()) ?? { revision: 0 };
      const { agentId } = account;
      await ledger.submit({ kind: "confirm_records", records: [{ agentId, revision }] });
      await eventsUntil(ledger.handle, isTimeOver);
    };
    yield* answeredTogether(ledger.handle, () =>
      tellLedger(ledger.handle, account.paying(account.request(100))),
    );
    yield async () => {
      expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 300, open: 3 });
      expect(silentTasksOf(await eventsOf(ledger.handle))).to.deep.equal([]);
    };
    await ledger.handle.terminate("the scene is over");
  }

  async function* agentAfterItsFirstTaskAndATimer() {
    const stage = newStage(client, taskQueue);
    const agent = await StagedAgent.start(stage, {
      firstKey: { keyId: "akey_1", lineageId: null, deliverableUntil: Date.now() + 3_600_000 },
      settings: { sweepAfterSeconds: 1 },
    });
    yield () => agent.state();
    const rename = () => tell(agent.handle, { kind: "rename", name: randomUUID() });
    yield* answeredTogether(agent.handle, rename);
    yield async () => {
      const { revision } = await agent.state();
      await agent.submit({ kind: "confirm_record", revision }, { kind: "confirm_followed", revision });
      await eventsUntil(agent.handle, isTimeOver);
    };
    yield* answeredTogether(agent.handle, rename);
    yield async () => {
      expect((await agent.state()).revision).to.equal(1 + 2 * UPDATES);
      expect(silentTasksOf(await eventsOf(agent.handle))).to.deep.equal([]);
    };
    await agent.handle.terminate("the scene is over");
  }

  it("updates that waited together are answered, after a first task or a timer, and it goes on", () =>
    playTogether(
      ledgerWithAnAccount(),
      ledgerAfterItsFirstTask(),
      ledgerAfterATimer(),
      agentAfterItsFirstTaskAndATimer(),
    ));

  it("a query that meets a timer which has fired changes no later replay", async () => {
    const played = await Promise.all(
      times(QUERIES, () => StagedLedger.start(newStage(client, taskQueue), { sweepAfterSeconds: 1 })),
    );
    const accounts = played.map((ledger) => new StagedAccount(ledger));
    await withColdWorker(() =>
      Promise.all(
        accounts.map(async (account) => {
          await account.ledger.submit(account.opening());
          await paidOf(account);
        }),
      ),
    );
    // Either of the query and the task that the timer has begun may come to the worker first.
    const calls = new TemporalCalls(client, taskQueue);
    const asked = played.map(({ handle }) => calls.query(handle, LEDGER_STATE_QUERY).catch(late));
    await Promise.all(
      played.map(({ handle }) =>
        eventsUntil(handle, (events) => events.some((event) => event.timerFiredEventAttributes)),
      ),
    );
    await withColdWorker(() => Promise.all([...asked, ...accounts.map(paidOf)]), QUERIES);
    for (const { handle } of played) {
      const history = await handle.fetchHistory();
      const { dataConverter } = testPayloads().worker;
      await Worker.runReplayHistory(
        { workflowBundle: WORKFLOW_BUNDLE, dataConverter },
        history,
        handle.workflowId,
      );
      await handle.terminate("the scene is over");
    }
  });
});

/** A slow machine may bring the worker after the query's end. */
function late(error: unknown): void {
  if (!(error instanceof ActorUnavailable)) throw error;
}

/** By the events of a workflow: its timer was cancelled, or has fired and its task is done. */
const isTimeOver: Parameters<typeof eventsUntil>[1] = (events) => {
  if (events.some((event) => event.timerCanceledEventAttributes)) return true;
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
  return {
    client,
    intruder: client,
    taskQueue,
    scene: randomUUID(),
    rail,
    projections,
    actors,
    effects,
    notSwept: [],
  };
}
