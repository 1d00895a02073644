import { RULE_WINDOW_SECONDS_MAX } from "../rules/rules.ts";

/** What an agent has used of its limits. Part of its account, changed only in a draft. */
export interface Usage {
  spentCents: number;
  reservedCents: number;
  /** The newest UTC day that anything was counted on. */
  day: { date: string; amountCents: number; count: number };
  /** When payments passed policy in the last 31 days, oldest first. */
  recentPayments: Counted[];
}

/** Payments of one instant, and the running count with them, so that a window is counted by looking at its two ends. */
export type Counted = [at: number, count: number, through: number];

export const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** How far back payments are counted: the longest window of a rule. */
export const HISTORY_MS = RULE_WINDOW_SECONDS_MAX * 1_000;

/**
 * Beyond this many distinct instants the oldest are merged into their later neighbour: never counted too short. Those of
 * the last hour only where nothing older is left to merge.
 */
export const HOUR_ENTRIES_MAX = 4_096;

export const emptyUsage = (): Usage => ({
  spentCents: 0,
  reservedCents: 0,
  day: { date: "", amountCents: 0, count: 0 },
  recentPayments: [],
});

/** The last day that was formatted, and its date: making a date costs more than the rest of a decision. */
let [knownDay, knownDate] = [0, "1970-01-01"];

/** The UTC date of an instant, `YYYY-MM-DD`. */
export function utcDate(now: number): string {
  const day = Math.floor(now / DAY_MS);
  if (day !== knownDay) {
    knownDate = new Date(now).toISOString().slice(0, 10);
    knownDay = day;
  }
  return knownDate;
}

const nextUtcMidnight = (now: number): number => (Math.floor(now / DAY_MS) + 1) * DAY_MS;

/**
 * The UTC day that a payment made now is counted on: today, or the newest day that anything was counted on, where the clock went
 * back over midnight. Else a day's limits would hold for nothing until that day comes again.
 */
export const dayCounted = ({ day }: Pick<Usage, "day">, now: number): string => {
  const today = utcDate(now);
  return day.date > today ? day.date : today;
};

/** The instant that a payment made now is counted at: now, or the newest one counted, where the clock went back. */
export const instantCounted = ({ recentPayments }: Pick<Usage, "recentPayments">, now: number): number =>
  Math.max(now, recentPayments.at(-1)?.[0] ?? now);

/** When the day that is counted now ends. */
export function dayResetsAt(usage: Usage, now: number): number {
  const today = nextUtcMidnight(now);
  return usage.day.date > utcDate(now) ? nextUtcMidnight(Date.parse(usage.day.date)) : today;
}

/** What is counted on the day of `now`. */
export function spentToday(usage: Usage, now: number): { date: string; amountCents: number; count: number } {
  const date = dayCounted(usage, now);
  return usage.day.date === date ? usage.day : { date, amountCents: 0, count: 0 };
}

/** Payments that passed policy in the window that ends now; one exactly as old as the window has left it. */
export function countWithin({ recentPayments: hour }: Usage, windowMs: number, now: number): number {
  const newest = hour.at(-1);
  const oldest = hour[firstAfter(hour, now - windowMs)];
  if (newest === undefined || oldest === undefined) return 0;
  const [, count, through] = oldest;
  return newest[2] - through + count;
}

/** The place of the first entry that is newer; one past the end where there is none. */
function firstAfter(hour: readonly Counted[], since: number): number {
  let [older, newer] = [0, hour.length];
  while (older < newer) {
    const middle = (older + newer) >>> 1;
    if ((hour[middle]?.[0] ?? Infinity) <= since) older = middle + 1;
    else newer = middle;
  }
  return older;
}

/** The same of the last 3,600 s; `ownAt`: without the payment that is checked again. */
export function countWithinHour(usage: Usage, now: number, ownAt: number | null = null): number {
  const count = countWithin(usage, HOUR_MS, now);
  return ownAt !== null && ownAt > now - HOUR_MS ? Math.max(0, count - 1) : count;
}

/** Payments that passed policy on the day of `now`; `ownDay`: without one that is checked again, and was counted on that day. */
export function countToday(usage: Usage, now: number, ownDay: string | null = null): number {
  const today = spentToday(usage, now);
  return ownDay === today.date ? Math.max(0, today.count - 1) : today.count;
}

/** When fewer than `limit` payments are in the rolling hour again; null where waiting does not help. */
export function slotFreeAt(usage: Usage, limit: number, now: number): number | null {
  if (limit === 0) return null;
  let newer = 0;
  for (let index = usage.recentPayments.length - 1; index >= 0; index -= 1) {
    const entry = usage.recentPayments[index];
    if (entry === undefined || entry[0] <= now - HOUR_MS) break;
    newer += entry[1];
    if (newer >= limit) return entry[0] + HOUR_MS;
  }
  return null;
}

/** Makes the day of `now` the day that is counted. Days only move forward. */
export function rollDay(usage: Usage, now: number): void {
  const date = utcDate(now);
  if (date > usage.day.date) usage.day = { date, amountCents: 0, count: 0 };
}

/** Counts one payment that passed policy. The counts stay, whatever the payment's outcome. */
export function countPayment(usage: Usage, now: number): void {
  rollDay(usage, now);
  usage.day.count += 1;
  countInstant(usage.recentPayments, now);
  let expired = 0;
  while ((usage.recentPayments[expired]?.[0] ?? Infinity) <= now - HISTORY_MS) expired += 1;
  if (expired > 0) usage.recentPayments.splice(0, expired);
  if (usage.recentPayments.length > HOUR_ENTRIES_MAX) mergeOldest(usage, now);
}

function countInstant(hour: Counted[], now: number): void {
  const newest = hour.at(-1);
  if (newest === undefined) return void hour.push([now, 1, 1]);
  if (newest[0] < now) return void hour.push([now, 1, newest[2] + 1]);
  newest[1] += 1;
  newest[2] += 1;
}

/** Makes room: pairs among the older half of what is older than an hour, so that the hourly limit stays exact. */
function mergeOldest(usage: Usage, now: number): void {
  const recent = usage.recentPayments.findIndex(([at]) => at > now - HOUR_MS);
  const mergeable =
    recent >= 2 ? Math.max(2, Math.floor(recent / 2)) : Math.floor(usage.recentPayments.length / 2);
  const merged: Counted[] = [];
  for (let index = 0; index < mergeable; index += 2) {
    const first = usage.recentPayments[index];
    const second = usage.recentPayments[index + 1];
    if (first === undefined) continue;
    const isPair = second !== undefined && index + 1 < mergeable;
    // What is counted through a pair is what was counted through its later half.
    merged.push(isPair ? [second[0], first[1] + second[1], second[2]] : first);
  }
  usage.recentPayments = [...merged, ...usage.recentPayments.slice(mergeable)];
}
