/** One sender's share of a batch while others send as well. */
const SHARE_MAX = 8;

/** Batches after a shared one during which other senders may return, and a large batch would delay them. */
const SHARED_BATCHES = 8;

/** Whether a command stops its sender, or starts it again; a stop may overtake other commands. */
export type Urgency = "stop" | "start" | "none";

/**
 * Items waiting for the next batch, round robin over their senders, so that a sender without pauses does not delay the
 * others. A command that stops its sender goes first, but not ahead of earlier stops and starts of the same sender,
 * which would undo it.
 */
export class FairQueue<T> {
  readonly #urgencyOf: (item: T) => Urgency;
  /** Queues by sender, in the order of their turns. */
  readonly #bySender = new Map<string, T[]>();
  /** Start of each sender's wait for its turn. */
  readonly #dueSinceMs = new Map<string, number>();
  readonly #now: () => number;
  /** Senders with a waiting stop. */
  readonly #stopped = new Set<string>();
  #size = 0;
  /** Number of further batches that are shared although only one sender waits. */
  #sharedBatches = 0;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(urgencyOf: (item: T) => Urgency, now: () => number = () => performance.now()) {
    this.#urgencyOf = urgencyOf;
    this.#now = now;
  }

  get size(): number {
    return this.#size;
  }

  get hasStop(): boolean {
    return this.#stopped.size > 0;
  }

  sizeOf(sender: string): number {
    return this.#bySender.get(sender)?.length ?? 0;
  }

  /** Start of the next sender's wait; null if nothing waits. */
  get dueSinceMs(): number | null {
    const [next] = this.#bySender.keys();
    return next === undefined ? null : (this.#dueSinceMs.get(next) ?? null);
  }

  /** Returns the sender's next item, disregarding that stops go first. */
  nextOf(sender: string): T | undefined {
    return this.#bySender.get(sender)?.[0];
  }

  remove(isRemoved: (item: T) => boolean): T[] {
    const removed: T[] = [];
    for (const [sender, waiting] of this.#bySender) {
      const left = waiting.filter((item) => !isRemoved(item));
      if (left.length === waiting.length) continue;
      removed.push(...waiting.filter(isRemoved));
      this.#size -= waiting.length - left.length;
      if (left.length > 0) this.#bySender.set(sender, left);
      else this.#forget(sender);
    }
    return removed;
  }

  #forget(sender: string): void {
    this.#bySender.delete(sender);
    this.#dueSinceMs.delete(sender);
  }

  #waitingOf(sender: string): T[] {
    const known = this.#bySender.get(sender);
    if (known !== undefined) return known;
    const waiting: T[] = [];
    this.#bySender.set(sender, waiting);
    this.#dueSinceMs.set(sender, this.#now());
    return waiting;
  }

  add(sender: string, item: T): void {
    const waiting = this.#waitingOf(sender);
    this.#size += 1;
    if (this.#urgencyOf(item) !== "stop") return void waiting.push(item);
    const behind = waiting.findLastIndex((each) => this.#urgencyOf(each) !== "none");
    waiting.splice(behind + 1, 0, item);
    this.#stopped.add(sender);
  }

  /** Returns taken but unsent commands to the front of the queue. */
  requeue(sender: string, items: readonly T[]): void {
    if (items.length === 0) return;
    this.#waitingOf(sender).unshift(...items);
    this.#size += items.length;
    if (items.some((item) => this.#urgencyOf(item) === "stop")) this.#stopped.add(sender);
  }

  /**
   * Takes items that `reserve` has room for: stops first, then round robin over senders, each limited to its share
   * while others send as well. A sender whose next item does not fit keeps its turn.
   */
  take(reserve: (item: T, isFirst: boolean) => boolean): T[] {
    const taken: T[] = [];
    const takeFrom = (sender: string, max: number): boolean => {
      const waiting = this.#bySender.get(sender) ?? [];
      let count = 0;
      for (const item of waiting) {
        if (count >= max) break;
        if (!reserve(item, taken.length + count === 0)) break;
        count += 1;
      }
      // A sender that was not served keeps its position; otherwise the senders before it would always come first.
      if (count === 0) return false;
      taken.push(...waiting.splice(0, count));
      this.#size -= count;
      // A served sender goes to the end.
      this.#forget(sender);
      if (waiting.length > 0) this.#waitingOf(sender).push(...waiting);
      return true;
    };
    for (const sender of this.#stopped) {
      const waiting = this.#bySender.get(sender) ?? [];
      takeFrom(sender, 1 + waiting.findLastIndex((each) => this.#urgencyOf(each) === "stop"));
      const left = this.#bySender.get(sender) ?? [];
      if (!left.some((each) => this.#urgencyOf(each) === "stop")) this.#stopped.delete(sender);
    }
    const senders = [...this.#bySender.keys()];
    this.#sharedBatches = senders.length > 1 ? SHARED_BATCHES : Math.max(0, this.#sharedBatches - 1);
    const share = this.#sharedBatches > 0 ? SHARE_MAX : Infinity;
    for (const sender of senders) takeFrom(sender, share);
    return taken;
  }
}
