import { randomUUID } from "node:crypto";
import type { Client, WorkflowHandle } from "@temporalio/client";
import { temporal } from "@temporalio/proto";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { type NativeConnection, Worker } from "@temporalio/worker";
import { MongoClient } from "mongodb";
import { createPaymentEffects, type PaymentEffects } from "../../../activities/effects.ts";
import { createActivities } from "../../../activities/index.ts";
import type { Activities } from "../../../activities/types.ts";
import { TemporalActors } from "../../../server/actors/temporal.ts";
import { createLogger } from "../../../server/logger.ts";
import { bundleWorkflows } from "../../../server/worker.ts";
import { SEARCH_ATTRIBUTES } from "../../../src/messages/common.ts";
import { MemoryProjections, MemoryRail, type RailScript, SETTLED } from "./doubles.ts";

/** The workflows on an engine, with the real activities over doubles of what lies behind them. */
export interface Stage {
  readonly client: Client;
  readonly taskQueue: string;
  readonly rail: MemoryRail;
  readonly projections: MemoryProjections;
  /** The server's way to the workflows, and its effects. */
  readonly actors: TemporalActors;
  readonly effects: PaymentEffects;
}

/** A stage on the time-skipping server. */
export interface TimedStage extends Stage {
  /** Lets this much of the engine's time go by at once. */
  skip(ms: number): Promise<void>;
  now(): Promise<number>;
}

export interface StageOptions {
  readonly rail?: RailScript;
  /** Replaces activities by a test's own. */
  readonly activities?: Partial<Activities>;
  /** Under which the worker signs what it writes into histories. */
  readonly identity?: string;
}

interface Engine {
  readonly client: Client;
  readonly native: NativeConnection;
  readonly namespace: string;
}

const logger = createLogger({ level: "fatal", file: null });

/** Runs a scene on a fresh time-skipping server: shared ones hang, and their time is everyone's. */
export async function onTimedStage(
  scene: (stage: TimedStage) => Promise<void>,
  options: StageOptions = {},
): Promise<void> {
  const path = process.env["TEST_TIME_SKIPPING_SERVER"];
  if (path === undefined)
    throw new Error("TEST_TIME_SKIPPING_SERVER is not set: run the tests with `npm test`");
  const environment = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: "existing-path", path } },
  });
  try {
    await registerSearchAttributes(environment);
    const { client, nativeConnection: native } = environment;
    await onStage({ client, native, namespace: environment.namespace ?? "default" }, options, (stage) =>
      scene({
        ...stage,
        skip: (ms) => environment.sleep(ms),
        now: () => environment.currentTimeMs(),
      }),
    );
  } finally {
    await environment.teardown();
  }
}

/** Runs a scene on an engine that runs already. */
export async function onStage(
  { client, native, namespace }: Engine,
  options: StageOptions,
  scene: (stage: Stage) => Promise<void>,
): Promise<void> {
  const taskQueue = `stage-${randomUUID()}`;
  const rail = new MemoryRail(options.rail ?? (() => SETTLED));
  const projections = new MemoryProjections();
  const actors = new TemporalActors(client, taskQueue);
  const clock = () => new Date();
  const dependencies = { rails: { card: rail, wallet: rail }, projections, workflows: actors, clock };
  // Never connected: only `provisionOrganization` uses it, and the scenes bring their own.
  const mongo = new MongoClient("mongodb://127.0.0.1:1");
  const agents = {
    submit: async (agentId: string, command: Parameters<TemporalActors["submit"]>[1][number]) => {
      const { replies } = await actors.submit(agentId, [command]);
      const [reply] = replies;
      if (reply === undefined) throw new Error("the actor gave no reply");
      return reply;
    },
  };
  const worker = await Worker.create({
    connection: native,
    namespace,
    taskQueue,
    workflowBundle: await bundleWorkflows(logger),
    activities: { ...createActivities({ ...dependencies, agents, db: mongo.db() }), ...options.activities },
    ...(options.identity === undefined ? {} : { identity: options.identity }),
  });
  const stage = { client, taskQueue, rail, projections, actors, effects: createPaymentEffects(dependencies) };
  await worker.runUntil(() => scene(stage));
}

async function registerSearchAttributes(environment: TestWorkflowEnvironment): Promise<void> {
  const keyword = temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
  const names = Object.values(SEARCH_ATTRIBUTES);
  await environment.connection.operatorService.addSearchAttributes({
    namespace: environment.namespace ?? "default",
    searchAttributes: Object.fromEntries(names.map((name) => [name, keyword])),
  });
}

export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/** A workflow's history so far. */
export async function eventsOf(handle: WorkflowHandle): Promise<readonly HistoryEvent[]> {
  return (await handle.fetchHistory()).events ?? [];
}

/** Milliseconds of an event's time. */
export function timeOf({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1_000 + Math.round((eventTime?.nanos ?? 0) / 1_000_000);
}

/** Milliseconds of the timers that a workflow has started, in order. */
export const timersOf = (events: readonly HistoryEvent[]): readonly number[] =>
  events.flatMap(({ timerStartedEventAttributes: started }) => {
    if (started === null || started === undefined) return [];
    const { seconds, nanos } = started.startToFireTimeout ?? {};
    return [Number(seconds ?? 0) * 1_000 + (nanos ?? 0) / 1_000_000];
  });

/** Names of the activities that a workflow has scheduled, in order. */
export const activitiesOf = (events: readonly HistoryEvent[]): readonly string[] =>
  events.flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
    scheduled === null || scheduled === undefined ? [] : [scheduled.activityType?.name ?? ""],
  );

/** Waits until a workflow has taken in the result of its n-th activity; answers its history then. */
export async function afterActivities(
  client: Client,
  workflowId: string,
  count: number,
): Promise<readonly HistoryEvent[]> {
  const events: HistoryEvent[] = [];
  let nextPageToken: Uint8Array = new Uint8Array();
  for (;;) {
    const page = await client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution: { workflowId },
      waitNewEvent: true,
      nextPageToken,
    });
    events.push(...(page.history?.events ?? []));
    if (hasTakenIn(events, count)) return events;
    if (page.nextPageToken.length === 0) throw new Error(`${workflowId} ended before`);
    nextPageToken = page.nextPageToken;
  }
}

function hasTakenIn(events: readonly HistoryEvent[], count: number): boolean {
  const completed = events.filter((event) => event.activityTaskCompletedEventAttributes);
  const last = completed[count - 1]?.eventId;
  if (last === undefined || last === null) return false;
  return events.some(
    (event) => event.workflowTaskCompletedEventAttributes && Number(event.eventId) > Number(last),
  );
}
