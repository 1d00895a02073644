import { offsetOf } from "./zone-offset.ts";

const MINUTE_MS = 60_000;

const digits = (value: number): string => String(value).padStart(2, "0");

/**
 * Formats instants in ISO 8601 in an IANA zone, to the millisecond, with the zone's offset at that instant; in UTC, the
 * default, with Z. Zones change their offset at full minutes, so instants of one minute are looked up once.
 */
export function zonedTime(timezone = "UTC"): (at: Date) => string {
  if (timezone.toUpperCase() === "UTC") return (at) => at.toISOString();
  const offsetAt = offsetOf(timezone);
  let known = { minute: Number.NaN, shiftMs: 0, suffix: "" };
  return (at) => {
    const minute = Math.floor(at.getTime() / MINUTE_MS);
    if (minute !== known.minute) {
      const offset = offsetAt(minute * MINUTE_MS);
      known = { minute, shiftMs: offset * MINUTE_MS, suffix: suffixOf(offset) };
    }
    return `${new Date(at.getTime() + known.shiftMs).toISOString().slice(0, -1)}${known.suffix}`;
  };
}

/** Returns the suffix of an offset in minutes, such as +05:30. */
function suffixOf(offset: number): string {
  const minutes = Math.abs(offset);
  return `${offset < 0 ? "-" : "+"}${digits(Math.floor(minutes / 60))}:${digits(minutes % 60)}`;
}
