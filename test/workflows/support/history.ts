import { setTimeout } from "node:timers/promises";
import type { Client, WorkflowHandle } from "@temporalio/client";
import type { temporal } from "@temporalio/proto";

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

/** Billable actions of a history on Temporal's cloud. */
export function actionsOf(events: readonly HistoryEvent[]) {
  const count = (kind: keyof HistoryEvent): number => events.filter((event) => event[kind]).length;
  return {
    updates: count("workflowExecutionUpdateAcceptedEventAttributes"),
    timers: count("timerStartedEventAttributes"),
    searchAttributes: count("upsertWorkflowSearchAttributesEventAttributes"),
    activities: count("activityTaskScheduledEventAttributes"),
  };
}

/** Names of the activities that have completed, in the order in which they did. */
export function completedOf(events: readonly HistoryEvent[]): readonly string[] {
  const names = new Map<string, string>();
  for (const { activityTaskScheduledEventAttributes: scheduled, eventId } of events)
    if (scheduled) names.set(String(eventId), scheduled.activityType?.name ?? "");
  return events.flatMap(({ activityTaskCompletedEventAttributes: completed }) =>
    completed ? [names.get(String(completed.scheduledEventId)) ?? ""] : [],
  );
}

/** How many activities of this name were under way at the same time, at the most. */
export function atOnceMax(events: readonly HistoryEvent[], name: string): number {
  const open = new Set<string>();
  let most = 0;
  for (const event of events) {
    const { activityTaskScheduledEventAttributes: scheduled } = event;
    if (scheduled?.activityType?.name === name) open.add(String(event.eventId));
    const ended =
      event.activityTaskCompletedEventAttributes ??
      event.activityTaskFailedEventAttributes ??
      event.activityTaskTimedOutEventAttributes;
    open.delete(String(ended?.scheduledEventId));
    most = Math.max(most, open.size);
  }
  return most;
}

/** What the activities of this name were given, in the order in which they were scheduled. */
export const inputsOf = (events: readonly HistoryEvent[], name: string): readonly unknown[] =>
  events.flatMap(({ activityTaskScheduledEventAttributes: scheduled }) => {
    if (scheduled?.activityType?.name !== name) return [];
    const data = scheduled.input?.payloads?.[0]?.data;
    const envelope: { readonly args: readonly unknown[] } = JSON.parse(Buffer.from(data ?? []).toString());
    return [envelope.args[0]];
  });

/**
 * Tasks of a workflow that had something to take in, but no update, and ended without a command: what a worker that meets the workflow
 * anew mistakes for heartbeats. Each by what it took in.
 */
export function silentTasksOf(events: readonly HistoryEvent[]): readonly string[] {
  const silent: string[] = [];
  let taken: string[] = [];
  for (const [place, event] of events.entries()) {
    taken.push(...TAKEN_IN.filter((kind) => event[kind]));
    if (!event.workflowTaskCompletedEventAttributes) continue;
    const next = events[place + 1];
    const isSaid = next !== undefined && WRITTEN_BY_TASKS.some((kind) => next[kind]);
    if (!isSaid && taken.length > 0) silent.push(`${String(event.eventId)}: ${taken.join(", ")}`);
    taken = [];
  }
  return silent;
}

const TAKEN_IN = [
  "activityTaskCompletedEventAttributes",
  "activityTaskFailedEventAttributes",
  "activityTaskTimedOutEventAttributes",
  "timerFiredEventAttributes",
  "workflowExecutionSignaledEventAttributes",
  "workflowExecutionStartedEventAttributes",
] as const;

const WRITTEN_BY_TASKS = [
  "activityTaskScheduledEventAttributes",
  "markerRecordedEventAttributes",
  "timerCanceledEventAttributes",
  "timerStartedEventAttributes",
  "upsertWorkflowSearchAttributesEventAttributes",
  "workflowExecutionCompletedEventAttributes",
  "workflowExecutionContinuedAsNewEventAttributes",
  "workflowExecutionFailedEventAttributes",
  "workflowExecutionUpdateAcceptedEventAttributes",
  "workflowPropertiesModifiedEventAttributes",
] as const;

/** The histories of all runs of a workflow so far, the first one first: each is named by the one before. */
export async function runsOf(
  client: Client,
  workflowId: string,
): Promise<readonly (readonly HistoryEvent[])[]> {
  const { raw } = await client.workflow.getHandle(workflowId).describe();
  const runs: (readonly HistoryEvent[])[] = [];
  let runId = raw.workflowExecutionInfo?.firstRunId ?? "";
  while (runId !== "") {
    const events = await eventsOf(client.workflow.getHandle(workflowId, runId));
    runs.push(events);
    runId = events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? "";
  }
  return runs;
}

const POLL_MS = 20;
const POLLS_MAX = 6_000;

/** Waits until a workflow has taken in the results of so many activities; answers its history then. */
export const afterActivities = (handle: WorkflowHandle, count: number): Promise<readonly HistoryEvent[]> =>
  eventsUntil(handle, (events) => {
    const completed = events.filter((event) => event.activityTaskCompletedEventAttributes);
    const last = completed[count - 1];
    if (last === undefined) return false;
    const after = events.slice(events.indexOf(last));
    return after.some((event) => event.workflowTaskCompletedEventAttributes);
  });

/** Reads a workflow's history until it is as the caller waits for: the test server lets no client follow one. */
export async function eventsUntil(
  handle: WorkflowHandle,
  until: (events: readonly HistoryEvent[]) => boolean,
): Promise<readonly HistoryEvent[]> {
  for (let poll = 0; poll < POLLS_MAX; poll += 1) {
    const events = await eventsOf(handle);
    if (until(events)) return events;
    await setTimeout(POLL_MS);
  }
  throw new Error(`${handle.workflowId} did not come so far`);
}
