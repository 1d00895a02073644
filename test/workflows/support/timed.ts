import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import proto from "@temporalio/proto";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { endCallContext } from "../../../src/lib/call-context.ts";
import { testPayloads } from "../../support/payloads.ts";
import { SEARCH_ATTRIBUTES } from "../../../src/messages/common.ts";
import { atEnd } from "../../support/at-end.ts";
import { timesMixedUp } from "../../support/runtime.ts";
import type { Stage, StageOptions } from "./stage.ts";
import { openTheatre } from "./stage.ts";

const STARTS_MAX = 6;
/** Of the engine's time, and what it may take: it takes some milliseconds, or as long as it says. */
const PROBE_SKIPPED_MS = 60_000;
const PROBE_MS = 1_000;
/** A scene that takes this long hangs; it is ended before its test is, so that its server does not outlive it. */
const SCENE_MS = 120_000;
/** Repeats of a scene that hangs: the server may have failed unseen, but not twice in a row. */
const HUNG_AGAIN_MAX = 1;
/** How often a scene is played again since its server, and no expectation, has failed; two updates at one moment do it again and again. */
const PLAYED_AGAIN_MAX = 8;
/** Since its server has got a task and an update mixed up: a workflow seldom goes on after that. */
const MIXED_UP_MS = 10_000;
const LOOK_MS = 250;
/** Few scenes take so long; from then on it is looked whether the server still skips time. On a busy machine it may seem once that it does not. */
const LONG_MS = 30_000;
const HELD_MAX = 5;
const HELD_SKIPPED_MS = 4_000;
/** A worker of a workflow that stands still may not end. */
const CLOSE_MS = 15_000;

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
  /** Whether its time does not go by at once though nothing of the scene is at work. */
  holdsTime(): Promise<boolean>;
  /** Whether its time still goes by at once: a workflow that is ended in the midst of a task can hold it for ever. */
  skips(): Promise<boolean>;
  close(): Promise<void>;
  /** Ends its server alone: what a scene that hangs still asks of it fails by and by. */
  kill(): Promise<void>;
}

/** The place that is free for the next scene of this process, whatever its file. */
let free: Place | null = null;
atEnd(async () => free?.close());

function take(): Place | null {
  const taken = free;
  free = null;
  return taken;
}

/**
 * Gives the tests of a file a time-skipping server. Its time is everyone's: it has gone on when the next scene begins. After
 * a scene that failed, or that left something behind which holds the time, the next one has a new server. A scene in which the server
 * fails, and no expectation has, is played again on another one.
 */
export function useTimedStage(): Play {
  let test: Mocha.Test | undefined;
  beforeEach(function () {
    test = this.currentTest;
  });
  return async (plot, options = {}) => {
    const isForgetful = options.isForgetful === true;
    // Back in its place only once it is known to be good for the next scene.
    const place = isForgetful ? await openPlace(true) : (take() ?? (await openPlace(false)));
    let [isWhole, isOver] = [false, true];
    try {
      await inBounds(place, place.play(plot, options), () => (isOver = false));
      isWhole = !isForgetful && (await place.skips());
    } catch (error) {
      if (error instanceof ServerFailed) test?.retries(error.isPlain ? PLAYED_AGAIN_MAX : HUNG_AGAIN_MAX);
      throw error;
    } finally {
      if (isWhole && free === null) free = place;
      else if (isOver) await place.close();
      else await place.kill();
    }
  };
}

class ServerFailed extends Error {
  /** Whether it is known that the server failed; else the scene hangs for an unknown reason. */
  readonly isPlain: boolean;

  constructor(message: string, isPlain = true) {
    super(message);
    this.isPlain = isPlain;
  }
}

/** Fails when the scene takes too long, or its server is known to have failed and it does not end. */
async function inBounds(place: Place, scene: Promise<void>, onLeft: () => void): Promise<void> {
  const [before, ended] = [timesMixedUp(), new AbortController()];
  const pause = (ms: number) => sleep(ms, undefined, { signal: ended.signal });
  const watch = async (): Promise<Error> => {
    const began = performance.now();
    let held = 0;
    while (performance.now() - began < SCENE_MS) {
      await pause(LOOK_MS);
      if (timesMixedUp() > before) {
        await pause(MIXED_UP_MS);
        return new ServerFailed("the time-skipping server got a workflow's task and an update mixed up");
      }
      if (performance.now() - began < LONG_MS) continue;
      held = (await place.holdsTime()) ? held + 1 : 0;
      if (held === HELD_MAX)
        return new ServerFailed("the time-skipping server holds its time, and nothing is at work");
    }
    return new ServerFailed(`a scene did not end within ${String(SCENE_MS)} ms`, false);
  };
  const left = watch().then((error) => {
    onLeft();
    throw error;
  });
  try {
    await Promise.race([scene, left]);
  } finally {
    ended.abort();
  }
}

async function openPlace(isForgetful: boolean): Promise<Place> {
  const environment = await startEnvironment();
  const { client, nativeConnection: native } = environment;
  const theatre = await openTheatre({
    client,
    native,
    taskQueue: "theatre",
    isForgetful,
    endsAtRest: true,
  }).catch(async (error: unknown) => {
    await environment.teardown();
    throw error;
  });
  const now = () => environment.currentTimeMs();
  const time = {
    now,
    skip: (ms: number) => environment.sleep(ms),
    withoutWorker: (work: () => Promise<void>) => theatre.withoutWorker(work),
    skipTo: async (at: number) => environment.sleep(Math.max(0, at - (await now()))),
  };
  const skips = (ms: number): Promise<boolean> => {
    const probe = environment.connection.withDeadline(Date.now() + PROBE_MS, () => environment.sleep(ms));
    return probe.then(
      () => true,
      () => false,
    );
  };
  return {
    play: (plot, options = {}) => theatre.play(randomUUID(), options, (stage) => plot({ ...stage, ...time })),
    skips: () => skips(PROBE_SKIPPED_MS),
    async holdsTime() {
      const isHeld = (await theatre.isAtRest()) && !(await skips(HELD_SKIPPED_MS));
      return isHeld && (await theatre.isAtRest());
    },
    async kill() {
      const [, port = ""] = environment.address.split(":");
      for (const pid of await childrenOf(port)) process.kill(pid, "SIGKILL");
    },
    async close() {
      try {
        await Promise.race([theatre.close(), sleep(CLOSE_MS, undefined, { ref: false })]);
      } finally {
        await environment.teardown();
        endCalls(environment);
      }
    },
  };
}

function endCalls({ connection, nativeConnection }: TestWorkflowEnvironment): void {
  endCallContext(connection);
  endCallContext(nativeConnection);
}

/** Processes that this one has started and that have this word in their command. Where the kernel doesn't tell, none. */
async function childrenOf(word: string): Promise<readonly number[]> {
  const threads = await readdir("/proc/self/task").catch(() => []);
  const listed = threads.map((thread) =>
    readFile(`/proc/self/task/${thread}/children`, "utf8").catch(() => ""),
  );
  const pids = (await Promise.all(listed))
    .join(" ")
    .split(" ")
    .filter((pid) => pid !== "");
  const commands = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""));
  const words = (await Promise.all(commands)).map((command) => command.split("\0"));
  return pids.filter((_pid, index) => words[index]?.includes(word) === true).map(Number);
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
      let environment: TestWorkflowEnvironment | null = null;
      const now = () => environment?.currentTimeMs() ?? Date.now();
      environment = await TestWorkflowEnvironment.createTimeSkipping({
        server: { executable: { type: "existing-path", path } },
        client: { ...testPayloads({ now }).client },
      });
      return environment;
    } catch (error) {
      if (tries === STARTS_MAX || !String(error).includes("did not start within")) throw error;
    }
  }
}
