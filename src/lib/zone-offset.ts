import { LRUCache } from "lru-cache";

const HOUR_MS = 3_600_000;

const MINUTES = /GMT(?:([+-])(\d\d):(\d\d))?(?::\d\d)?$/;

/** Maximum cached formatters, each some tens of kilobytes; the least recently used are evicted. */
const FORMATTERS_MAX = 100;

/** Formatters by IANA zone, cached because new ones fill memory faster than it is collected. */
const formatters = new LRUCache<string, Intl.DateTimeFormat>({ max: FORMATTERS_MAX });

function formatterOf(timezone: string): Intl.DateTimeFormat {
  const formatter =
    formatters.get(timezone) ??
    new Intl.DateTimeFormat("en-US", { timeZone: timezone, timeZoneName: "longOffset" });
  formatters.set(timezone, formatter);
  return formatter;
}

/** Returns a zone's offset in minutes ahead of UTC, at an instant in epoch milliseconds. Throws for an unknown zone. */
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

/**
 * Segments of a start in epoch milliseconds and minutes ahead of UTC, oldest first, and the end of the covered range.
 */
interface Offsets {
  readonly segments: readonly (readonly [sinceMs: number, offsetMinutes: number])[];
  readonly untilMs: number;
}

/**
 * Returns an IANA zone's offsets from `fromMs` to `untilMs` in epoch milliseconds, each transition exact to the
 * millisecond. No zone changes twice within a day, so no step up to a day misses a transition.
 */
export function zoneOffsets(timezone: string, fromMs: number, untilMs: number, stepMs = HOUR_MS): Offsets {
  const offsetAt = offsetOf(timezone);
  let offset = offsetAt(fromMs);
  const segments: [number, number][] = [[fromMs, offset]];
  for (let from = fromMs; from < untilMs; from += stepMs) {
    const until = Math.min(from + stepMs, untilMs);
    const next = offsetAt(until);
    if (next !== offset) segments.push([transitionBetween(offsetAt, from, until), next]);
    offset = next;
  }
  return { segments, untilMs };
}

/** Returns the first millisecond of the new offset, by bisection: the API has no list of a zone's transitions. */
function transitionBetween(offsetAt: (at: number) => number, before: number, after: number): number {
  let [old, changed] = [before, after];
  while (changed - old > 1) {
    const middle = Math.floor((old + changed) / 2);
    if (offsetAt(middle) === offsetAt(before)) old = middle;
    else changed = middle;
  }
  return changed;
}
