import { randomUUID } from "node:crypto";
import proto from "@temporalio/proto";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { dataConverter } from "../../../src/lib/payload-compression.ts";
import { SEARCH_ATTRIBUTES } from "../../../src/messages/common.ts";
import type { Stage, StageOptions } from "./stage.ts";
import { openTheatre } from "./stage.ts";

const STARTS_MAX = 6;
/** Of the engine's time, and what it may take: it takes some milliseconds, or as long as it says. */
const PROBE_SKIPPED_MS = 60_000;
const PROBE_MS = 1_000;

/** A stage whose time is skipped while a workflow's result is awaited. */
export interface TimedStage extends Stage {
  /** Lets this much of the engine's time go by at once. */
  skip(ms: number): Promise<void>;
  /** The engine's time, in epoch milliseconds. */
  now(): Promise<number>;
  /** Lets time go by until then. */
  skipTo(at: number): Promise<void>;
  /** Lets something happen while no worker is there. */
  withoutWorker(work: () => Promise<void>): Promise<void>;
}

type Play = (plot: (stage: TimedStage) => Promise<void>, options?: StageOptions) => Promise<void>;

/** A time-skipping server with a worker. */
interface Place {
  play: Play;
  /** Whether its time still goes by at once: a workflow that is ended in the midst of a task can hold it for ever. */
  skips(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Gives the tests of a file a time-skipping server. Its time is everyone's: it has gone on when the next scene begins. After
 * a scene that failed, or that left something behind which holds the time, the next one has a new server.
 */
export function useTimedStage(): Play {
  let shared: Promise<Place> | null = null;
  after(async () => (await shared)?.close());
  const take = (): Promise<Place> | null => {
    const taken = shared;
    shared = null;
    return taken;
  };
  return async (plot, options = {}) => {
    const isForgetful = options.isForgetful === true;
    if (isForgetful) await (await take())?.close();
    // Back in its place only once it is known to be good for the next scene.
    const place = await (take() ?? openPlace(isForgetful));
    let isWhole = false;
    try {
      await place.play(plot, options);
      isWhole = !isForgetful && (await place.skips());
    } finally {
      if (isWhole) shared = Promise.resolve(place);
      else await place.close();
    }
  };
}

async function openPlace(isForgetful: boolean): Promise<Place> {
  const environment = await startEnvironment();
  const { client, nativeConnection: native } = environment;
  const theatre = await openTheatre({ client, native, taskQueue: "theatre", isForgetful }).catch(
    async (error: unknown) => {
      await environment.teardown();
      throw error;
    },
  );
  const now = () => environment.currentTimeMs();
  const time = {
    now,
    skip: (ms: number) => environment.sleep(ms),
    withoutWorker: (work: () => Promise<void>) => theatre.withoutWorker(work),
    skipTo: async (at: number) => environment.sleep(Math.max(0, at - (await now()))),
  };
  return {
    play: (plot, options = {}) => theatre.play(randomUUID(), options, (stage) => plot({ ...stage, ...time })),
    skips() {
      const probe = environment.connection.withDeadline(Date.now() + PROBE_MS, () =>
        environment.sleep(PROBE_SKIPPED_MS),
      );
      return probe.then(
        () => true,
        () => false,
      );
    },
    async close() {
      try {
        await theatre.close();
      } finally {
        await environment.teardown();
      }
    },
  };
}

async function startEnvironment(): Promise<TestWorkflowEnvironment> {
  const path = process.env["TEST_TIME_SKIPPING_SERVER"];
  if (path === undefined)
    throw new Error("TEST_TIME_SKIPPING_SERVER is not set: run the tests with `npm test`");
  const environment = await startedServer(path);
  const { connection } = environment;
  // Upserting an attribute that is not registered wedges a workflow.
  const keyword = proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
  const names = Object.values(SEARCH_ATTRIBUTES);
  await connection.operatorService.addSearchAttributes({
    namespace: environment.client.options.namespace,
    searchAttributes: Object.fromEntries(names.map((name) => [name, keyword])),
  });
  return environment;
}

/** On a busy machine a server is not always there within the SDK's 5 s; the next one is. */
async function startedServer(path: string): Promise<TestWorkflowEnvironment> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await TestWorkflowEnvironment.createTimeSkipping({
        server: { executable: { type: "existing-path", path } },
        client: { dataConverter },
      });
    } catch (error) {
      if (tries === STARTS_MAX || !String(error).includes("did not start within")) throw error;
    }
  }
}
