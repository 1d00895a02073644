import pLimit, { type LimitFunction } from "p-limit";
import type { Unavailable } from "../lib/unavailable.ts";

/** There is no room even in the queue, or the work's turn came too late; nothing of it was begun. */
export class TooMuchWork extends Error implements Unavailable {
  override readonly name = "TooMuchWork";
  readonly isUnavailable = true;
}

export interface WorkBounds {
  /** Pieces of work that go on at once. */
  readonly atOnceMax: number;
  /** Pieces that wait for one of them to end. */
  readonly waitingMax: number;
  /** What has waited longer is not begun: its caller was answered 503, or is about to be. */
  readonly waitMs: number;
}

/** Expensive work that an anonymous caller can ask for: so much of it at once, a short queue, and no more. */
export class BoundedWork {
  readonly #bounds: WorkBounds;
  readonly #elapsed: () => number;
  readonly #pool: LimitFunction;

  /** `elapsed`: a monotonic clock in milliseconds. */
  constructor(bounds: WorkBounds, elapsed: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#elapsed = elapsed;
    this.#pool = pLimit(bounds.atOnceMax);
  }

  /**
   * Carries the work out when its turn has come, in the order of the calls. Throws `TooMuchWork`: at once where the queue is full, and
   * in its turn where that has come too late.
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const { atOnceMax, waitMs, waitingMax } = this.#bounds;
    const { activeCount, pendingCount } = this.#pool;
    if (activeCount >= atOnceMax && pendingCount >= waitingMax) {
      throw new TooMuchWork(`${pendingCount} pieces of work wait already`);
    }
    const until = this.#elapsed() + waitMs;
    return this.#pool(() => {
      if (this.#elapsed() > until) throw new TooMuchWork(`its turn did not come within ${waitMs} ms`);
      return work();
    });
  }
}
