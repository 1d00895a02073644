/** What an agent has used of its limits. Owned by its actor, changed only by `evolve`. */
export interface Usage {
  spentCents: number;
  reservedCents: number;
  /** The newest UTC day that anything was counted on. */
  day: { date: string; amountCents: number; count: number };
  /** When payments passed policy in the last hour: [epoch milliseconds, count], oldest first. */
  hour: [number, number][];
}

export const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Beyond this many distinct instants the oldest are merged into their later neighbour: never counted too short. */
export const HOUR_ENTRIES_MAX = 4_096;

export const emptyUsage = (): Usage => ({
  spentCents: 0,
  reservedCents: 0,
  day: { date: "", amountCents: 0, count: 0 },
  hour: [],
});

/** The UTC date of an instant, `YYYY-MM-DD`. */
export const utcDate = (now: number): string => new Date(now).toISOString().slice(0, 10);

export const nextUtcMidnight = (now: number): number => (Math.floor(now / DAY_MS) + 1) * DAY_MS;

/** What is counted on the UTC day of `now`. */
export function spentToday(usage: Usage, now: number): { date: string; amountCents: number; count: number } {
  const date = utcDate(now);
  return usage.day.date === date ? usage.day : { date, amountCents: 0, count: 0 };
}

/** Payments that passed policy in the 3,600 s that end now; one exactly 3,600 s old has left the window. */
export function countWithinHour(usage: Usage, now: number, ownAt: number | null = null): number {
  let count = 0;
  for (let index = usage.hour.length - 1; index >= 0; index -= 1) {
    const entry = usage.hour[index];
    if (entry === undefined || entry[0] <= now - HOUR_MS) break;
    count += entry[1];
  }
  return ownAt !== null && ownAt > now - HOUR_MS ? Math.max(0, count - 1) : count;
}

export function countToday(usage: Usage, now: number, ownAt: number | null = null): number {
  const today = spentToday(usage, now);
  return ownAt !== null && utcDate(ownAt) === today.date ? Math.max(0, today.count - 1) : today.count;
}

/** When fewer than `limit` payments will lie in the rolling hour again; null where waiting does not help. */
export function slotFreeAt(usage: Usage, limit: number, now: number): number | null {
  if (limit === 0) return null;
  let newer = 0;
  for (let index = usage.hour.length - 1; index >= 0; index -= 1) {
    const entry = usage.hour[index];
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

/** Counts one payment that passed policy. The counts stay, whatever becomes of the payment. */
export function countPayment(usage: Usage, now: number): void {
  rollDay(usage, now);
  usage.day.count += 1;
  const newest = usage.hour.at(-1);
  if (newest !== undefined && newest[0] >= now) newest[1] += 1;
  else usage.hour.push([now, 1]);
  let expired = 0;
  while ((usage.hour[expired]?.[0] ?? Infinity) <= now - HOUR_MS) expired += 1;
  if (expired > 0) usage.hour.splice(0, expired);
  if (usage.hour.length > HOUR_ENTRIES_MAX) mergeOldest(usage);
}

function mergeOldest(usage: Usage): void {
  const merged: [number, number][] = [];
  const half = Math.floor(usage.hour.length / 2);
  for (let index = 0; index < half; index += 2) {
    const first = usage.hour[index];
    const second = usage.hour[index + 1];
    if (first === undefined) continue;
    merged.push(second === undefined || index + 1 >= half ? first : [second[0], first[1] + second[1]]);
  }
  usage.hour = [...merged, ...usage.hour.slice(half)];
}
