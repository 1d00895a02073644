import { LRUCache } from "lru-cache";
import type { ZoneOffsets } from "../../domain/rules/time-window.ts";
import { zoneOffsets } from "../../lib/zone-offset.ts";

const HOUR_MS = 3_600_000;

/** Range of a payment's offsets in hours, around the full hour in which they are computed. */
const HOURS_BACK = 1;
const HOURS_AHEAD = 49;

/** Maximum cached zones; there are about 600 names in all. */
const ZONES_MAX = 1_000;

/**
 * UTC offsets of time zones around now, by which actors judge time windows: from at least an hour ago to at least 48
 * hours ahead. Computed once an hour per zone.
 */
export class ZoneClocks {
  readonly #clock: () => Date;
  readonly #known = new LRUCache<string, { readonly hour: number; readonly offsets: ZoneOffsets }>({
    max: ZONES_MAX,
  });

  constructor(clock: () => Date) {
    this.#clock = clock;
  }

  offsetsOf(timezone: string): ZoneOffsets {
    const hour = Math.floor(this.#clock().getTime() / HOUR_MS);
    const known = this.#known.get(timezone);
    if (known?.hour === hour) return known.offsets;
    const offsets = zoneOffsets(timezone, (hour - HOURS_BACK) * HOUR_MS, (hour + HOURS_AHEAD) * HOUR_MS);
    this.#known.set(timezone, { hour, offsets });
    return offsets;
  }
}
