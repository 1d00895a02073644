import type { RecordedEvent, RecordedHistory } from "./histories.ts";

type Alteration = (history: RecordedHistory) => RecordedHistory;

const eventsOf = (history: RecordedHistory, type: string): RecordedEvent[] =>
  history.events.filter((event) => event.eventType === `EVENT_TYPE_${type}`);

function the<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the history has no ${what}`);
  return value;
}

/** Every value under a key anywhere in a JSON value, replaced. */
function replaced(value: unknown, replace: (key: string, inner: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((inner) => replaced(inner, replace));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([key, inner]) => [key, replace(key, replaced(inner, replace))]);
  return Object.fromEntries(fields);
}

const replacedEvent = (event: RecordedEvent, replace: (key: string, inner: unknown) => unknown) => ({
  ...event,
  ...Object(replaced(event, replace)),
});

/** As if an activity had been scheduled under another name than the workflow's code gives it. */
export const renameActivity: Alteration = (history) => {
  const scheduled = the(eventsOf(history, "ACTIVITY_TASK_SCHEDULED")[0], "activity");
  const renamed = replacedEvent(scheduled, (key, inner) =>
    key === "activityType" ? { name: "somethingElse" } : inner,
  );
  return { ...history, events: history.events.map((event) => (event === scheduled ? renamed : event)) };
};

/** As if the workflow had never started its first timer: that event and the timer's end are taken out. */
export const removeTimer: Alteration = (history) => {
  const started = the(eventsOf(history, "TIMER_STARTED")[0], "timer");
  const ended = [...eventsOf(history, "TIMER_FIRED"), ...eventsOf(history, "TIMER_CANCELED")].filter(
    (event) => JSON.stringify(event).includes(`"startedEventId":"${started.eventId}"`),
  );
  return without(history, [started, ...ended]);
};

/** As if the workflow had scheduled nothing where its first activity was: all events of that activity are taken out. */
export const removeActivity: Alteration = (history) => {
  const scheduled = the(eventsOf(history, "ACTIVITY_TASK_SCHEDULED")[0], "activity");
  const later = ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED"]
    .flatMap((type) => eventsOf(history, type))
    .filter((event) => JSON.stringify(event).includes(`"scheduledEventId":"${scheduled.eventId}"`));
  return without(history, [scheduled, ...later]);
};

/** A history without some events, the rest numbered without a gap, references included. */
function without(history: RecordedHistory, removed: readonly RecordedEvent[]): RecordedHistory {
  const left = history.events.filter((event) => !removed.includes(event));
  const numbers = new Map(left.map((event, index) => [event.eventId, String(index + 1)]));
  const renumber = (key: string, inner: unknown): unknown =>
    /eventId$/i.test(key) && typeof inner === "string" ? (numbers.get(inner) ?? inner) : inner;
  return { ...history, events: left.map((event) => replacedEvent(event, renumber)) };
}
