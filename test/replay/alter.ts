import { z } from "zod";
import type { PayloadKeys } from "../../src/temporal/payload-keys.ts";
import { testPayloads } from "../support/payloads.ts";
import {
  fromBase64,
  sealedPayloads,
  type RecordedEvent,
  type RecordedHistory,
  toBase64,
  workflowIdOf,
} from "./histories.ts";

const update = z.looseObject({ args: z.tuple([z.array(z.unknown()), z.unknown()]) });

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

const isOf = (started: RecordedEvent) => (event: RecordedEvent) =>
  JSON.stringify(event).includes(`"startedEventId":"${started.eventId}"`);

/** As if the workflow had never started the first timer that fired: both events are taken out. One that was cancelled may leave no trace. */
export const removeTimer: Alteration = (history) => {
  const ended = eventsOf(history, "TIMER_FIRED");
  const timers = eventsOf(history, "TIMER_STARTED").filter((event) => ended.some(isOf(event)));
  const started = the(timers[0], "timer that fired");
  return without(history, [started, ...ended.filter(isOf(started))]);
};

/** As if the workflow had scheduled nothing where its first activity was: all events of that activity are taken out. */
export const removeActivity: Alteration = (history) => {
  const scheduled = the(eventsOf(history, "ACTIVITY_TASK_SCHEDULED")[0], "activity");
  const later = ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED"]
    .flatMap((type) => eventsOf(history, type))
    .filter((event) => JSON.stringify(event).includes(`"scheduledEventId":"${scheduled.eventId}"`));
  return without(history, [scheduled, ...later]);
};

/** As if the commands of the first update with a pause among them had come the other way round. */
export const swapCommands: Alteration = (history) =>
  withPayload(history, "UPDATE_ACCEPTED", (value) => {
    const { args, ...rest } = update.parse(value);
    const [commands, known] = args;
    const hasPause = commands.some((command) => Object(command).kind === "pause");
    return hasPause ? { ...rest, args: [commands.toReversed(), known] } : null;
  });

/** As if the first update that was answered with an account or a payment had been told another amount. */
export const changeReply: Alteration = (history) =>
  withPayload(history, "UPDATE_COMPLETED", (value) => {
    const text = JSON.stringify(value);
    const changed = text.replace(
      /"(remainingCents|spentCents|reservedCents|revision|sequence)":(\d+)/,
      '"$1":1$2',
    );
    return changed === text ? null : JSON.parse(changed);
  });

/** As if a process with these keys had sent the payloads of all events of a type. */
export const resealed = (history: RecordedHistory, type: string, keys: PayloadKeys): RecordedHistory => {
  const [codec, newCodec] = [testPayloads().codec, testPayloads({ keys }).codec];
  const altered = eventsOf(history, type);
  the(altered[0], type);
  const events = history.events.map((event) =>
    altered.includes(event)
      ? replacedEvent(event, (key, inner) => {
          if (key !== "payloads") return inner;
          return sealedPayloads.parse(inner).map((sealed) => {
            const opened = codec.open(fromBase64(sealed), null);
            if (!opened.ok) throw new Error(`a payload of the recording is ${opened.refused}`);
            return toBase64(newCodec.seal(opened.payload, atob(sealed.metadata["place"] ?? "")));
          });
        })
      : event,
  );
  return { ...history, events };
};

const isCommand = (event: RecordedEvent | undefined): boolean =>
  event !== undefined && /_(TIMER_STARTED|ACTIVITY_TASK_SCHEDULED)$/.test(event.eventType);

/** As if two commands of one task had been given in another order. */
export const swapEvents: Alteration = (history) => {
  const { events } = history;
  const place = events.findIndex(
    (event, at) =>
      isCommand(event) && isCommand(events[at + 1]) && event.eventType !== events[at + 1]?.eventType,
  );
  const [one, other] = [the(events[place], "two commands"), the(events[place + 1], "two commands")];
  const swapped = [
    { ...other, eventId: one.eventId },
    { ...one, eventId: other.eventId },
  ];
  const moved = new Map([
    [one.eventId, other.eventId],
    [other.eventId, one.eventId],
  ]);
  const refer = (key: string, inner: unknown): unknown =>
    /(scheduled|started)EventId$/.test(key) && typeof inner === "string"
      ? (moved.get(inner) ?? inner)
      : inner;
  return {
    ...history,
    events: [
      ...events.slice(0, place),
      ...swapped,
      ...events.slice(place + 2).map((event) => replacedEvent(event, refer)),
    ],
  };
};

/** A history whose first payload of these events that can be altered is. `alter`: null where this one can't. */
function withPayload(
  history: RecordedHistory,
  type: string,
  alter: (value: unknown) => unknown,
): RecordedHistory {
  const { codec } = testPayloads();
  const place = workflowIdOf(history);
  let isAltered = false;
  const events = history.events.map((event) => {
    if (isAltered || event.eventType !== `EVENT_TYPE_WORKFLOW_EXECUTION_${type}`) return event;
    return replacedEvent(event, (key, inner) => {
      if (isAltered || key !== "payloads") return inner;
      return sealedPayloads.parse(inner).map((sealed) => {
        const opened = codec.open(fromBase64(sealed), place);
        if (!opened.ok || isAltered) return sealed;
        const altered = alter(JSON.parse(Buffer.from(opened.payload.data ?? []).toString()));
        if (altered === null) return sealed;
        isAltered = true;
        const data = Buffer.from(JSON.stringify(altered));
        return toBase64(codec.seal({ ...opened.payload, data }, place));
      });
    });
  });
  if (!isAltered) throw new Error(`the history has no ${type} that can be altered`);
  return { ...history, events };
}

/** A history without some events, the rest numbered without a gap, references included. */
function without(history: RecordedHistory, removed: readonly RecordedEvent[]): RecordedHistory {
  const left = history.events.filter((event) => !removed.includes(event));
  const numbers = new Map(left.map((event, index) => [event.eventId, String(index + 1)]));
  const renumber = (key: string, inner: unknown): unknown =>
    /eventId$/i.test(key) && typeof inner === "string" ? (numbers.get(inner) ?? inner) : inner;
  return { ...history, events: left.map((event) => replacedEvent(event, renumber)) };
}
