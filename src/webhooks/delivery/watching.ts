import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_GROWS_BY = 1.25;

export interface WatchingOptions {
  /** Interval of steps while nothing is announced. */
  readonly pauseMs: number;
  /** Longest interval, approached step by step while there is nothing to do. */
  readonly pauseMaxMs: number;
  /** Delay from an announcement to the step. */
  readonly settleMs: number;
}

/** Runs a watch until it is stopped: one step after another, with a pause when there is nothing to do. */
export class Watching {
  readonly #options: WatchingOptions;
  readonly #stopped = new AbortController();
  #wake: (() => void) | null = null;
  #isNudged = false;

  constructor(options: WatchingOptions) {
    this.#options = options;
  }

  /** Announces that something has happened: a paused watch steps soon. */
  nudge(): void {
    this.#isNudged = true;
    this.#wake?.();
  }

  /** Stops the watch: a running one ends after the current step, and no other begins. */
  stop(): void {
    this.#stopped.abort();
    this.#wake?.();
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  /** Steps for `forMs`, unless stopped or a step throws. `step` returns whether there is more to do now. */
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

  /** Returns whether something was announced. */
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
