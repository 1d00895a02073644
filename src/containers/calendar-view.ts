import { type Calendar, type CalendarSettings, WEEK_STARTS } from "../domain/ledger/calendar.ts";
import { minutesOf } from "../domain/rules/time-window.ts";

/** A calendar in requests and responses. */
export interface CalendarView {
  readonly timezone: string;
  /** `HH:MM`. */
  readonly resetTime: string;
  readonly weekStartsOn: (typeof WEEK_STARTS)[number];
  readonly monthStartsOn: number;
  readonly yearStartsIn: number;
  readonly version: number;
}

const digits = (value: number): string => String(value).padStart(2, "0");

export const calendarView = (calendar: Calendar): CalendarView => ({
  timezone: calendar.timezone,
  resetTime: `${digits(Math.floor(calendar.resetMinutes / 60))}:${digits(calendar.resetMinutes % 60)}`,
  weekStartsOn: WEEK_STARTS[calendar.weekStart] ?? "mon",
  monthStartsOn: calendar.monthDay,
  yearStartsIn: calendar.yearMonth,
  version: calendar.version,
});

export const settingsIn = (view: Omit<CalendarView, "version">): CalendarSettings => ({
  resetMinutes: minutesOf(view.resetTime),
  weekStart: WEEK_STARTS.indexOf(view.weekStartsOn),
  monthDay: view.monthStartsOn,
  yearMonth: view.yearStartsIn,
});
