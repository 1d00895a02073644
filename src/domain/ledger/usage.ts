import { RULE_WINDOW_SECONDS_MAX } from "../rules/rules.ts";
import { NO_WINDOWS, type Windows } from "./windows.ts";

/** Usage of an agent's limits, as part of its account; changed only in a draft. */
export interface Usage {
  spentMc: number;
  reservedMc: number;
  /** Newest UTC day on which anything was counted. */
  day: { date: string; amountMc: number; count: number };
  windows: Windows;
  /** Times of payments that passed policy in the last 31 days, oldest first. */
  counts: readonly Counted[];
  /** Windows, longer than an hour, of the rules in force when the newest payment passed policy; shortest first. */
  windowsMs: readonly number[];
  /** Factor by which the buckets of counts are wider than usual, in a full ledger; 1 otherwise. */
  coarser: number;
}

/** Number of payments that count as made at one instant, at most a bucket's width late (`inBuckets`). */
export type Counted = readonly [at: number, count: number];

export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** Retention of counts: the longest window of a rule. */
export const HISTORY_MS = RULE_WINDOW_SECONDS_MAX * 1_000;

/** Minimum buckets per window of a limit or rule in force. */
const BUCKETS_IN_FORCE = 32;
/** Minimum buckets per window of a rule that may be set later. */
const BUCKETS_OF_OTHERS = 4;

export const emptyUsage = (): Usage => ({
  spentMc: 0,
  reservedMc: 0,
  day: { date: "", amountMc: 0, count: 0 },
  windows: NO_WINDOWS,
  counts: [],
  windowsMs: [],
  coarser: 1,
});

/** Cached date of the last formatted day: formatting a date costs more than the rest of a decision. */
let [knownDay, knownDate] = [0, "1970-01-01"];

/** Returns the UTC date of an instant, `YYYY-MM-DD`. */
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
 * Returns the UTC day on which a payment made now is counted: today or, if the clock went back over midnight, the
 * newest day on which anything was counted. Otherwise a day's limits would have no effect until that day comes again.
 */
export const dayCounted = ({ day }: Pick<Usage, "day">, now: number): string => {
  const today = utcDate(now);
  return day.date > today ? day.date : today;
};

/**
 * Returns the instant at which a payment made now is counted: now or, if the clock went back, the newest counted one.
 */
export const instantCounted = ({ counts }: Pick<Usage, "counts">, now: number): number =>
  Math.max(now, counts.at(-1)?.[0] ?? now);

/** Returns the end of the day that is counted now. */
export function dayResetsAt(usage: Usage, now: number): number {
  const today = nextUtcMidnight(now);
  return usage.day.date > utcDate(now) ? nextUtcMidnight(Date.parse(usage.day.date)) : today;
}

export function spentToday(usage: Usage, now: number): { date: string; amountMc: number; count: number } {
  const date = dayCounted(usage, now);
  return usage.day.date === date ? usage.day : { date, amountMc: 0, count: 0 };
}

/** Returns the number of payments in the window that ends now; an instant exactly as old as the window is outside. */
export function countWithin({ counts }: Pick<Usage, "counts">, windowMs: number, now: number): number {
  let within = 0;
  for (let index = counts.length - 1; index >= 0; index -= 1) {
    const counted = counts[index];
    if (counted === undefined || counted[0] <= now - windowMs) break;
    within += counted[1];
  }
  return within;
}

/** Counts payments within the last 3,600 s; `ownAt` excludes the payment that is checked again. */
export function countWithinHour(usage: Usage, now: number, ownAt: number | null = null): number {
  const count = countWithin(usage, HOUR_MS, now);
  // A payment older than the history is in none of the counts.
  if (ownAt === null || ownAt <= now - HISTORY_MS) return count;
  const [own = ownAt] = usage.counts.find(([at]) => at >= ownAt) ?? [];
  return own > now - HOUR_MS ? Math.max(0, count - 1) : count;
}

/**
 * Returns the number of payments that passed policy on the day of `now`. `ownDay` excludes the payment that is checked
 * again, which was counted on that day.
 */
export function countToday(usage: Usage, now: number, ownDay: string | null = null): number {
  const today = spentToday(usage, now);
  return ownDay === today.date ? Math.max(0, today.count - 1) : today.count;
}

/** Returns when fewer than `limit` payments count in the rolling hour again; null if waiting does not help. */
export function slotFreeAt({ counts }: Usage, limit: number, now: number): number | null {
  if (limit === 0) return null;
  let newer = 0;
  for (let index = counts.length - 1; index >= 0; index -= 1) {
    const counted = counts[index];
    if (counted === undefined || counted[0] <= now - HOUR_MS) break;
    newer += counted[1];
    if (newer >= limit) return counted[0] + HOUR_MS;
  }
  return null;
}

/** Makes the day of `now` the counted day. Days only move forward. */
export function rollDay(usage: Usage, now: number): void {
  const date = utcDate(now);
  if (date > usage.day.date) usage.day = { date, amountMc: 0, count: 0 };
}

/** Counts a payment that passed policy, for good. `windowsMs`: windows in which the rules in force count. */
export function countPayment(
  usage: Usage,
  now: number,
  windowsMs: readonly number[] = [],
  coarser = usage.coarser,
): void {
  rollDay(usage, now);
  usage.day.count += 1;
  usage.windowsMs = windowsMs;
  usage.coarser = coarser;
  usage.counts = inBuckets(usage, now, 1);
}

/** Returns the maximum excess of a window's length; `windowsMs` are the windows in force. */
function inaccuracyMs(windowMs: number, windowsMs: readonly number[]): number {
  if (windowMs <= HOUR_MS) return windowMs / BUCKETS_IN_FORCE;
  const inForce = windowsMs.find((each) => each >= windowMs) ?? Infinity;
  return Math.min(inForce / BUCKETS_IN_FORCE, windowMs / BUCKETS_OF_OTHERS);
}

/** Returns the maximum width of a bucket of this age. */
export const mostWidthMs = (ageMs: number, windowsMs: readonly number[], coarser: number): number =>
  Math.min(coarser * inaccuracyMs(ageMs, windowsMs), ageMs);

/**
 * Returns the counts without expired ones, with older ones in wider buckets, and with `added` payments made now. An
 * instant moves up to its bucket's end, so it counts too long and never too short, and never returns to a window that
 * it has left. Widths are powers of two, so that buckets nest and repeated moves lose no accuracy.
 */
export function inBuckets(
  { coarser, counts, windowsMs }: Pick<Usage, "coarser" | "counts" | "windowsMs">,
  now: number,
  added = 0,
): readonly Counted[] {
  // If the clock went back, the added ones count with the newest.
  const addedAt = instantCounted({ counts }, now);
  const newestFirst: Counted[] = added === 0 ? [] : [[addedAt, added]];
  let width = 1;
  for (let index = counts.length - 1; index >= 0; index -= 1) {
    const counted = counts[index];
    if (counted === undefined || counted[0] <= now - HISTORY_MS) break;
    const [instant, count] = counted;
    while (2 * width <= mostWidthMs(now - bucketEnd(instant, 2 * width), windowsMs, coarser)) width *= 2;
    const at = bucketEnd(instant, width);
    const newer = newestFirst.at(-1);
    if (newer?.[0] === at) newestFirst[newestFirst.length - 1] = [at, newer[1] + count];
    else newestFirst.push(at === instant ? counted : [at, count]);
  }
  return newestFirst.toReversed();
}

export const bucketEnd = (instant: number, width: number): number => Math.ceil(instant / width) * width;
