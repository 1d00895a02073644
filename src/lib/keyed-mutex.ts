import pLimit, { type LimitFunction } from "p-limit";
import { TimeoutError, withTimeout } from "./with-timeout.ts";

/**
 * Lets work of one name go one after the other in this process, in the order in which it came. A courtesy, never what
 * keeps anything right: transactions that would only make each other repeat wait instead. Other processes' are not
 * waited for.
 */
export class KeyedMutex {
  readonly #queues = new Map<string, LimitFunction>();
  readonly #waitMs: number;

  /** Work whose turn has not come within the bound is not begun. */
  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#waitMs;
    const queue = this.#queues.get(name) ?? pLimit(1);
    this.#queues.set(name, queue);
    return new Promise<T>((resolve) => {
      const turn = async (): Promise<void> => {
        const mine = this.#unlessLate(until, work);
        resolve(mine);
        // Work that never ends does not block later callers: a turn is a courtesy.
        await withTimeout(2 * this.#waitMs, mine).catch(nothing);
        if (queue.pendingCount === 0) this.#queues.delete(name);
      };
      void queue(turn);
    });
  }

  async #unlessLate<T>(until: number, work: () => Promise<T>): Promise<T> {
    if (performance.now() > until) throw new TimeoutError(`no turn within ${this.#waitMs} ms`);
    return work();
  }
}

const nothing = (): void => undefined;
