/**
 * Bytes of JSON that go in one update at the most. The engine repeats an update in what its worker answers, and ends a workflow for good
 * that answers with a message above its bound (2 MiB).
 */
const BATCH_BYTES_MAX = 512 * 1024;

/** The remaining capacity of one update. */
export class BatchCapacity {
  #slots: number;
  #bytes = BATCH_BYTES_MAX;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /**
   * Reserves capacity for a command, with its reply where that is long; whether there was any. `isFirst`: always, since none is
   * larger than a request, which alone fits.
   */
  tryReserve(command: unknown, repliedBytes = 0, isFirst = false): boolean {
    if (this.#slots <= 0) return false;
    const bytes = Buffer.byteLength(JSON.stringify(command)) + repliedBytes;
    if (bytes > this.#bytes && !isFirst) return false;
    this.#bytes -= bytes;
    this.#slots -= 1;
    return true;
  }

  /** Takes from a queue's front what fits. */
  take<T>(queue: T[]): T[] {
    let count = 0;
    while (count < queue.length && this.tryReserve(queue[count])) count += 1;
    return queue.splice(0, count);
  }
}
