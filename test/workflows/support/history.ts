import { setTimeout } from "node:timers/promises";
import type { WorkflowHandle } from "@temporalio/client";
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

/** Reads a workflow's history until it is as the caller waits for: the test server lets nobody follow one. */
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
