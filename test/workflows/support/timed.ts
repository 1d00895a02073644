import proto from "@temporalio/proto";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { SEARCH_ATTRIBUTES } from "../../../src/messages/common.ts";
import type { Stage, StageOptions } from "./stage.ts";
import { openTheatre } from "./stage.ts";

const STARTS_MAX = 6;

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

/**
 * Plays a scene on a time-skipping server of its own: its time is everyone's, and what one scene leaves behind hangs
 * the next.
 */
export async function play(
  plot: (stage: TimedStage) => Promise<void>,
  options: StageOptions = {},
): Promise<void> {
  const { isForgetful = false } = options;
  const environment = await startEnvironment();
  try {
    const { client, nativeConnection: native } = environment;
    const theatre = await openTheatre({ client, native, taskQueue: "theatre", isForgetful });
    try {
      const now = () => environment.currentTimeMs();
      const time = {
        now,
        skip: (ms: number) => environment.sleep(ms),
        withoutWorker: (work: () => Promise<void>) => theatre.withoutWorker(work),
        skipTo: async (at: number) => environment.sleep(Math.max(0, at - (await now()))),
      };
      await theatre.play("scene", options, (stage) => plot({ ...stage, ...time }));
    } finally {
      await theatre.close();
    }
  } finally {
    await environment.teardown();
  }
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
      });
    } catch (error) {
      if (tries === STARTS_MAX || !String(error).includes("did not start within")) throw error;
    }
  }
}
