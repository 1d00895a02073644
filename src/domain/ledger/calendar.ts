/**
 * Calendar of a project, which determines when the windows of its spend limits begin. Computes only with offsets that
 * the server supplies: a workflow has no time-zone data of its own, and could replay with other data than it decided
 * by.
 */

export const PERIODS = ["day", "week", "month", "quarter", "year"] as const;
export type Period = (typeof PERIODS)[number];

/** A value for each period, in the order of `PERIODS`. */
export type PerPeriod = readonly number[];

export const WEEK_STARTS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

/** Offset of a zone from UTC in minutes, from an instant on. The first one also holds before its instant. */
export type Segment = readonly [sinceMs: number, offsetMinutes: number];

/** Offsets of a time zone according to a server's data. */
export interface Zone {
  /** IANA name. */
  readonly timezone: string;
  /** Version of the data, such as `2025c`. */
  readonly tz: string;
  readonly segments: readonly Segment[];
  /** End of the covered range, in epoch milliseconds; the last offset also holds beyond it. */
  readonly until: number;
}

export interface CalendarSettings {
  /** Minutes after midnight at which a day begins. */
  readonly resetMinutes: number;
  /** Index in `WEEK_STARTS` of a week's first day. */
  readonly weekStart: number;
  /** First day of a month, and of quarters and years: 1 to 28. */
  readonly monthDay: number;
  /** First month of a year: 1 to 12. */
  readonly yearMonth: number;
}

export interface Calendar extends Zone, CalendarSettings {
  readonly version: number;
  /** Time of the last change of settings or offsets, in epoch milliseconds. */
  readonly changedAt: number;
  /** Starts of the windows at `changedAt`, which last until the first boundary after it. */
  readonly keptStarts: PerPeriod;
}

/** Maximum of a `Date`'s epoch milliseconds. */
const FOREVER_MS = 8_640_000_000_000_000;

export const UTC_ZONE: Zone = { timezone: "UTC", tz: "", segments: [[0, 0]], until: FOREVER_MS };

/** Calendar of a project that has set none. */
export const UTC_CALENDAR: Calendar = {
  ...UTC_ZONE,
  version: 1,
  resetMinutes: 0,
  weekStart: 0,
  monthDay: 1,
  yearMonth: 1,
  changedAt: 0,
  keptStarts: [0, 0, 0, 0, 0],
};

/** Windows of an instant: the start of each, and the start of the next. */
export interface WindowBounds {
  readonly at: number;
  readonly starts: PerPeriod;
  readonly ends: PerPeriod;
}

/** Cached bounds of each calendar: nearly every payment is in the same windows as the one before. */
const known = new WeakMap<Calendar, WindowBounds>();

/** Returns the windows of an instant. Bounds only move forward with `at`. */
export function windowBounds(calendar: Calendar, at: number): WindowBounds {
  const last = known.get(calendar);
  if (last !== undefined && at >= last.at && last.ends.every((end) => at < end)) return { ...last, at };
  const found = PERIODS.map((period) => windowOf(calendar, period, at));
  const bounds = {
    at,
    // Amounts counted before a change of the calendar count until the new calendar's next boundary.
    starts: found.map(([start], place) =>
      start > calendar.changedAt ? start : (calendar.keptStarts[place] ?? 0),
    ),
    ends: found.map(([, end]) => end),
  };
  known.set(calendar, bounds);
  return bounds;
}

/** Returns the calendar with other settings or offsets from `now` on. */
export function changedCalendar(
  calendar: Calendar,
  change: Partial<Zone & CalendarSettings & Pick<Calendar, "version">>,
  now: number,
): Calendar {
  return { ...calendar, ...change, changedAt: now, keptStarts: windowBounds(calendar, now).starts };
}

/** Whether offsets should replace a calendar's: newer data does, and data of the same version if it covers more. */
export const isNewerZone = (calendar: Calendar, { timezone, tz, until }: Omit<Zone, "segments">): boolean =>
  timezone === calendar.timezone && (tz > calendar.tz || (tz === calendar.tz && until > calendar.until));

type Window = readonly [start: number, end: number];

/** Day numbers count from 1970-01-01, months from January of year 0. */
const MONTHS_PER_YEAR = 12;
const MONTHS: Readonly<Partial<Record<Period, number>>> = { month: 1, quarter: 3, year: MONTHS_PER_YEAR };
const DAYS: Readonly<Partial<Record<Period, number>>> = { day: 1, week: 7 };
/** 1970-01-01 was a Thursday. */
const FIRST_WEEKDAY = 3;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

function windowOf(calendar: Calendar, period: Period, at: number): Window {
  const local = at + offsetMs(calendar, at);
  let start = firstDay(calendar, period, Math.floor((local - calendar.resetMinutes * MINUTE_MS) / DAY_MS));
  let next = nextDay(calendar, period, start);
  // A boundary counts as passed even if the clocks went back over it and show an earlier time again.
  while (instantOf(calendar, next) <= at) [start, next] = [next, nextDay(calendar, period, next)];
  return [instantOf(calendar, start), instantOf(calendar, next)];
}

/** Returns the first day of the window that contains a day. */
function firstDay({ monthDay, weekStart, yearMonth }: CalendarSettings, period: Period, day: number): number {
  if (period === "day") return day;
  if (period === "week") return day - modulo(day + FIRST_WEEKDAY - weekStart, 7);
  const [month, dayOfMonth] = civil(day);
  const current = dayOfMonth < monthDay ? month - 1 : month;
  return dayNumber(current - modulo(current - (yearMonth - 1), MONTHS[period] ?? 1), monthDay);
}

/** Returns the first day of the window after the one that begins on `first`. */
function nextDay({ monthDay }: CalendarSettings, period: Period, first: number): number {
  const days = DAYS[period];
  if (days !== undefined) return first + days;
  return dayNumber(civil(first)[0] + (MONTHS[period] ?? 1), monthDay);
}

const modulo = (value: number, by: number): number => ((value % by) + by) % by;

/** Returns when the clocks first reach a day's reset time: at a gap's end, or at its first occurrence. */
function instantOf({ resetMinutes, segments }: Calendar, day: number): number {
  const local = day * DAY_MS + resetMinutes * MINUTE_MS;
  let instant = local;
  for (const [place, [since, offset]] of segments.entries()) {
    const reached = local - offset * MINUTE_MS;
    instant = place === 0 ? reached : Math.max(reached, since);
    if (instant < (segments[place + 1]?.[0] ?? Infinity)) break;
  }
  return instant;
}

function offsetMs({ segments }: Zone, at: number): number {
  let offset = segments[0]?.[1] ?? 0;
  for (const [since, minutes] of segments) if (since <= at) offset = minutes;
  return offset * MINUTE_MS;
}

/** Days are counted in years that begin in March, so that a leap day is the last of its year. */
const DAYS_PER_ERA = 146_097;
const YEARS_PER_ERA = 400;
const DAYS_TO_EPOCH = 719_468;

/** Returns the month and the day of the month of a day number, in the Gregorian calendar. */
function civil(day: number): readonly [month: number, dayOfMonth: number] {
  const shifted = day + DAYS_TO_EPOCH;
  const era = Math.floor(shifted / DAYS_PER_ERA);
  const ofEra = shifted - era * DAYS_PER_ERA;
  const year = Math.floor(
    (ofEra - Math.floor(ofEra / 1_460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365,
  );
  const ofYear = ofEra - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const fromMarch = Math.floor((5 * ofYear + 2) / 153);
  return [
    (era * YEARS_PER_ERA + year) * MONTHS_PER_YEAR + fromMarch + 2,
    ofYear - Math.floor((153 * fromMarch + 2) / 5) + 1,
  ];
}

/** Returns the day number of a day of a month. */
function dayNumber(month: number, dayOfMonth: number): number {
  const fromMarch = month - 2;
  const year = Math.floor(fromMarch / MONTHS_PER_YEAR);
  const era = Math.floor(year / YEARS_PER_ERA);
  const ofEra = year - era * YEARS_PER_ERA;
  const ofYear = Math.floor((153 * modulo(fromMarch, MONTHS_PER_YEAR) + 2) / 5) + dayOfMonth - 1;
  const days = ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear;
  return era * DAYS_PER_ERA + days - DAYS_TO_EPOCH;
}
