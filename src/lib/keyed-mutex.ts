import { TimeoutError, withTimeout } from "./with-timeout.ts";

/**
 * Lets work of one name go one after the other in this process, in the order in which it came. A courtesy, never what
 * keeps anything right: transactions that would only make each other repeat wait instead. Other processes' are not
 * waited for.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #waitMs: number;

  /** Work whose turn has not come within the bound is not begun. */
  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#waitMs;
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(() => {
      if (performance.now() > until) throw new TimeoutError(`no turn within ${this.#waitMs} ms`);
      return work();
    });
    // What never ends keeps nobody who comes later: a turn is a courtesy.
    const ended = withTimeout(2 * this.#waitMs, mine).then(nothing, nothing);
    this.#last.set(name, ended);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === ended) this.#last.delete(name);
    }
  }
}

const nothing = (): void => undefined;
