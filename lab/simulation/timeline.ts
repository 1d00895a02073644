/** Simulated time, and what is to happen in it. */

export interface Planned {
  readonly at: number;
  readonly order: number;
  /** Not waited for until the world is at rest: the end of an approval's window, the next request of a client. */
  readonly idle: boolean;
  readonly run: () => void;
}

const isBefore = (one: Planned, other: Planned): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);

/** A queue of what is planned, by time, and by the order of planning at the same time. */
class Queue {
  readonly #heap: Planned[] = [];

  get size(): number {
    return this.#heap.length;
  }

  push(planned: Planned): void {
    const heap = this.#heap;
    let index = heap.push(planned) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(planned, parent)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = planned;
  }

  pop(): Planned | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      const left = heap[below];
      const right = heap[below + 1];
      if (left === undefined) break;
      const least = right !== undefined && isBefore(right, left) ? right : left;
      if (least === right) below += 1;
      if (!isBefore(least, last)) break;
      heap[index] = least;
      index = below;
    }
    heap[index] = last;
    return first;
  }
}

/**
 * One thing happens after another, each with all that follows from it at once; what is to follow later is planned. The
 * same plans give the same course.
 */
export class Timeline {
  readonly #queue = new Queue();
  #order = 0;
  #busy = 0;
  #now: number;

  constructor(startsAt: number) {
    this.#now = startsAt;
  }

  /** Epoch milliseconds. */
  get now(): number {
    return this.#now;
  }

  /** Whether all that is left is idle. */
  get isAtRest(): boolean {
    return this.#busy === 0;
  }

  after(ms: number, run: () => void, idle = false): void {
    this.#order += 1;
    if (!idle) this.#busy += 1;
    this.#queue.push({ at: this.#now + Math.max(0, ms), order: this.#order, idle, run });
  }

  sleep(ms: number, idle = false): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, resolve, idle);
    });
  }

  /** Lets the next thing happen, to its end; false when nothing is planned. */
  async step(): Promise<boolean> {
    const next = this.#queue.pop();
    if (next === undefined) return false;
    if (!next.idle) this.#busy -= 1;
    this.#now = Math.max(this.#now, next.at);
    next.run();
    await followed();
    return true;
  }
}

/** Resolves in the next turn of the event loop, when everything that follows without waiting has happened. */
const followed = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
