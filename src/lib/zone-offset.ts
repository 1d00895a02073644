import { LRUCache } from "lru-cache";

const MINUTES = /GMT(?:([+-])(\d\d):(\d\d))?(?::\d\d)?$/;

/** Formatters that are kept, each some tens of kilobytes; those that were used last. */
const FORMATTERS_MAX = 100;

/** Formatters by IANA zone, cached because new ones fill the memory faster than it is collected. */
const formatters = new LRUCache<string, Intl.DateTimeFormat>({ max: FORMATTERS_MAX });

function formatterOf(timezone: string): Intl.DateTimeFormat {
  const formatter =
    formatters.get(timezone) ??
    new Intl.DateTimeFormat("en-US", { timeZone: timezone, timeZoneName: "longOffset" });
  formatters.set(timezone, formatter);
  return formatter;
}

/**
 * Returns the offset of an IANA zone from UTC in whole minutes, at an instant in epoch milliseconds. Throws if the
 * zone does not exist.
 */
export function offsetOf(timezone: string): (atMs: number) => number {
  const shown = formatterOf(timezone);
  return (atMs) => {
    const found = MINUTES.exec(shown.format(atMs));
    if (found === null) throw new Error(`the offset of ${timezone} is unknown`);
    const [, sign, hours = "0", minutes = "0"] = found;
    const offset = Number(hours) * 60 + Number(minutes);
    return sign === "-" ? -offset : offset;
  };
}
