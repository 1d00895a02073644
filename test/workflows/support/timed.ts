import { temporal } from "@temporalio/proto";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { SEARCH_ATTRIBUTES } from "../../../src/messages/common.ts";
import type { Stage, StageOptions, Theatre } from "./stage.ts";
import { openTheatre } from "./stage.ts";

/** A stage whose time is skipped while a workflow's result is awaited. */
export interface TimedStage extends Stage {
  /** Lets this much of the engine's time go by at once. */
  skip(ms: number): Promise<void>;
}

type Play = (plot: (stage: TimedStage) => Promise<void>, options?: StageOptions) => Promise<void>;

/**
 * Gives the tests of a file a time-skipping server, on which they play one after another. Its time is everyone's, so
 * a scene measures from its own beginning, and what it leaves behind is ended.
 */
export function useTimedStage(): Play {
  let environment: TestWorkflowEnvironment | null = null;
  let theatre: Theatre | null = null;
  let scenes = 0;
  before(async () => {
    environment = await startEnvironment();
    const { client, nativeConnection: native } = environment;
    theatre = await openTheatre({ client, native, taskQueue: "theatre" });
  });
  after(async () => {
    await theatre?.close();
    await environment?.teardown();
  });
  return async (plot, options = {}) => {
    scenes += 1;
    await theatre?.play(`scene-${scenes}`, options, (stage) =>
      plot({
        ...stage,
        skip: async (ms) => {
          await environment?.sleep(ms);
        },
      }),
    );
  };
}

async function startEnvironment(): Promise<TestWorkflowEnvironment> {
  const path = process.env["TEST_TIME_SKIPPING_SERVER"];
  if (path === undefined)
    throw new Error("TEST_TIME_SKIPPING_SERVER is not set: run the tests with `npm test`");
  const environment = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: "existing-path", path } },
  });
  const { connection } = environment;
  // Upserting an attribute that is not registered wedges a workflow.
  const keyword = temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
  const names = Object.values(SEARCH_ATTRIBUTES);
  await connection.operatorService.addSearchAttributes({
    namespace: environment.client.options.namespace,
    searchAttributes: Object.fromEntries(names.map((name) => [name, keyword])),
  });
  return environment;
}
