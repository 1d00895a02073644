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

/** Expensive work that anybody can ask for: so much of it at once, a short queue, and no more. */
export class BoundedWork {
  readonly #bounds: WorkBounds;
  readonly #elapsed: () => number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** `elapsed`: a monotonic clock in milliseconds. */
  constructor(bounds: WorkBounds, elapsed: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#elapsed = elapsed;
  }

  /**
   * Carries the work out when its turn has come, in the order of the calls. Throws `TooMuchWork`: at once where the queue is full, and
   * in its turn where that has come too late.
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const until = this.#elapsed() + this.#bounds.waitMs;
    if (this.#running >= this.#bounds.atOnceMax) await this.#turn();
    else this.#running += 1;
    try {
      if (this.#elapsed() > until)
        throw new TooMuchWork(`its turn did not come within ${this.#bounds.waitMs} ms`);
      return await work();
    } finally {
      // Whoever is next takes the place over, so that nobody who has just come gets in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.#bounds.waitingMax) {
      throw new TooMuchWork(`${this.#waiting.length} pieces of work wait already`);
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
