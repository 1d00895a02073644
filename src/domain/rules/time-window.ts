/**
 * UTC offsets of one time zone over a range of time, computed before the decision and recorded with it: time-zone data
 * changes, while a replayed decision must not.
 */
export interface ZoneOffsets {
  /** [start in epoch milliseconds; minutes ahead of UTC], oldest first. */
  readonly segments: readonly (readonly [sinceMs: number, offsetMinutes: number])[];
  /** End of the known range. */
  readonly untilMs: number;
}

/** A time window, prepared for judging. */
export interface TimeWindow {
  /** Indexes in `WEEKDAYS`. */
  readonly days: readonly number[];
  readonly fromMinutes: number;
  readonly toMinutes: number;
  readonly outside: boolean;
}

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;

/** 1970-01-01 was a Thursday; Monday is 0. */
const EPOCH_WEEKDAY = 3;

/** Returns the minutes since midnight of `HH:MM`; `24:00` is the end of the day. */
export function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  return hours * 60 + minutes;
}

/**
 * Returns weekday (Monday is 0) and minutes since midnight in local time; null if the offsets don't cover that time.
 */
export function wallClock(
  { segments, untilMs }: ZoneOffsets,
  now: number,
): { readonly weekday: number; readonly minutes: number } | null {
  if (now >= untilMs) return null;
  const segment = segments.findLast(([sinceMs]) => sinceMs <= now);
  if (segment === undefined) return null;
  const minutes = Math.floor(now / MINUTE_MS + segment[1]);
  const day = Math.floor(minutes / DAY_MINUTES);
  return { weekday: (day + EPOCH_WEEKDAY) % 7, minutes: minutes - day * DAY_MINUTES };
}

/**
 * Whether a time window flags a payment made now. A repeated hour is in the window twice, a skipped one never. A time
 * that the offsets don't cover is flagged, so that a person decides.
 */
export function timeWindowFlags(check: TimeWindow, offsets: ZoneOffsets | undefined, now: number): boolean {
  const wall = offsets === undefined ? null : wallClock(offsets, now);
  if (wall === null) return true;
  return isInside(check, wall.weekday, wall.minutes) !== check.outside;
}

/** Whether a time is inside a window, whose part after midnight belongs to the day on which it began. */
function isInside({ days, fromMinutes, toMinutes }: TimeWindow, weekday: number, minutes: number): boolean {
  if (fromMinutes < toMinutes) {
    return days.includes(weekday) && minutes >= fromMinutes && minutes < toMinutes;
  }
  const dayBefore = (weekday + 6) % 7;
  return minutes >= fromMinutes ? days.includes(weekday) : minutes < toMinutes && days.includes(dayBefore);
}

/** Whether two windows cover the same hours of the same days, on the same side. */
export const isSameWindow = (one: TimeWindow, other: TimeWindow): boolean =>
  one.fromMinutes === other.fromMinutes &&
  one.toMinutes === other.toMinutes &&
  one.outside === other.outside &&
  one.days.length === other.days.length &&
  one.days.every((day, index) => day === other.days[index]);
