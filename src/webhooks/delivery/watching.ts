import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_GROWS_BY = 1.25;

export interface WatchingOptions {
  /** Interval of looks while nothing is announced. */
  readonly pauseMs: number;
  /** Longest interval, approached look by look while there is nothing to find. */
  readonly pauseMaxMs: number;
  /** Delay from an announcement to the look. */
  readonly settleMs: number;
}

/** Runs a watch until it is stopped: one step after another, and a pause where there is nothing to do. */
export class Watching {
  readonly #options: WatchingOptions;
  readonly #stopped = new AbortController();
  #wake: (() => void) | null = null;
  #isNudged = false;

  constructor(options: WatchingOptions) {
    this.#options = options;
  }

  /** Something has happened: a paused watch looks soon. */
  nudge(): void {
    this.#isNudged = true;
    this.#wake?.();
  }

  /** A running watch ends after the step at hand, and no other begins. */
  stop(): void {
    this.#stopped.abort();
    this.#wake?.();
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  /** Steps so long, unless it is stopped, or a step throws; `step` answers whether there is more to do now. */
  async watch(forMs: number, step: () => Promise<boolean>): Promise<void> {
    const until = performance.now() + forMs;
    const { pauseMaxMs, pauseMs: pauseMinMs } = this.#options;
    let pauseMs = pauseMinMs;
    while (!this.#stopped.signal.aborted && performance.now() < until) {
      const isMore = await step();
      if (isMore) pauseMs = pauseMinMs;
      else {
        const wasNudged = await this.#pause(pauseMs);
        pauseMs = wasNudged ? pauseMinMs : Math.min(pauseMaxMs, pauseMs * PAUSE_GROWS_BY);
      }
    }
  }

  /** Answers whether something was said to have happened. */
  async #pause(pauseMs: number): Promise<boolean> {
    const { settleMs } = this.#options;
    if (!this.#isNudged) await this.#nudgedWithin(pauseMs);
    const wasNudged = this.#isNudged;
    if (wasNudged) await sleep(settleMs, null, { signal: this.#stopped.signal }).catch(() => undefined);
    this.#isNudged = false;
    return wasNudged;
  }

  async #nudgedWithin(ms: number): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }
}
