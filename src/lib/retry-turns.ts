import { LRUCache } from "lru-cache";

export interface RetryBounds {
  /** Shortest and longest pause before a retry. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** Time in which one more caller can be served. */
  readonly stepMs: number;
}

/** Maximum remembered names. A forgotten one begins with the first turn again. */
const NAMES_MAX = 1_000;

/**
 * Spreads the retries of refused callers over time, one each step, so that they neither come back together nor more
 * often than they can be served. Callers whose turn would be after the longest pause share the last turns before it.
 */
export class RetryTurns {
  readonly #bounds: RetryBounds;
  readonly #elapsed: () => number;
  readonly #latest: LRUCache<string, number>;

  /** `elapsed` is a monotonic clock in milliseconds. */
  constructor(bounds: RetryBounds, elapsed: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#elapsed = elapsed;
    this.#latest = new LRUCache({ max: NAMES_MAX });
  }

  /** Returns the pause of the next refused caller under a name, in whole seconds. */
  nextSeconds(name: string): number {
    const { firstMs, lastMs, stepMs } = this.#bounds;
    const first = this.#elapsed() + firstMs;
    const next = Math.max(first, (this.#latest.get(name) ?? 0) + stepMs);
    const last = first + lastMs - firstMs;
    const turn = next > last ? last - firstMs : next;
    this.#latest.set(name, turn);
    return Math.ceil((turn - first + firstMs) / 1_000);
  }
}
