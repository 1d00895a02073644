import pLimit, { type LimitFunction } from "p-limit";
import { TimeoutError, withTimeout } from "./with-timeout.ts";

/**
 * Serializes work of the same name within this process, in order of arrival. Never needed for correctness: it makes
 * transactions wait that would otherwise only conflict. Other processes are not waited for.
 */
export class KeyedMutex {
  readonly #queues = new Map<string, LimitFunction>();
  readonly #waitMs: number;

  /** `waitMs` is the maximum wait for a turn; later work is not begun. */
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
        // Work that never ends must not block later callers for good.
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
