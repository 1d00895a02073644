import { UTC_ZONE, type Zone } from "../domain/ledger/calendar.ts";
import { zoneOffsets } from "../lib/zone-offset.ts";

/** Offsets of time zones for the calendars of ledgers, which have no time-zone data of their own. */

const DAY_MS = 86_400_000;

/** Range of the offsets: a year and a month back for current windows, 18 months ahead. */
const DAYS_BACK = 396;
const DAYS_AHEAD = 548;

/** Remaining range at which offsets are sent again: nine months. */
const DAYS_LEFT = 274;

const dataVersion = (): string => process.versions.tz ?? "";

export function zoneAround(timezone: string, now: Date): Zone {
  if (timezone === UTC_ZONE.timezone) return UTC_ZONE;
  const day = Math.floor(now.getTime() / DAY_MS);
  const { segments, untilMs } = zoneOffsets(
    timezone,
    (day - DAYS_BACK) * DAY_MS,
    (day + DAYS_AHEAD) * DAY_MS,
    DAY_MS,
  );
  return { timezone, tz: dataVersion(), segments, until: untilMs };
}

/** Whether to replace a ledger's offsets: this process has newer data, or equal data and the offsets end soon. */
export const isZoneStale = ({ tz, until }: Omit<Zone, "segments">, now: Date): boolean =>
  dataVersion() > tz || (dataVersion() === tz && until < now.getTime() + DAYS_LEFT * DAY_MS);
