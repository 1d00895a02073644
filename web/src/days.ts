import { CalendarDays } from "../../src/lib/calendar-days.ts";
import { useOrganization } from "./organization.ts";

const DAY_MS = 86_400_000;

/** Time zone of the days by which pages filter and sum; null while unknown. */
export function useTimezone(): string | null {
  const { data, isPending } = useOrganization();
  if (isPending) return null;
  return data?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Returns today's date, such as 2026-03-29. */
export const todayIn = (timezone: string): string => new CalendarDays(timezone).of(new Date()).day;

/** Returns the date a number of days later, or earlier if negative. */
export const daysAfter = (day: string, days: number): string =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);

/** Returns the number of days from the first to the last, inclusive. */
export const countOfDays = (first: string, last: string): number =>
  Math.round((Date.parse(last) - Date.parse(first)) / DAY_MS) + 1;

interface Days {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Returns the instants at which the first day begins and the last one ends. */
export function instantsOf({ from, to }: Days, timezone: string): { from?: string; to?: string } {
  const days = new CalendarDays(timezone);
  return {
    ...(from === undefined ? {} : { from: days.named(from).from.toISOString() }),
    ...(to === undefined ? {} : { to: days.named(to).until.toISOString() }),
  };
}
