/**
 * Maximum bytes of JSON per update. Temporal repeats an update in its worker's response, and permanently ends a
 * workflow whose response exceeds its bound (2 MiB).
 */
const BATCH_BYTES_MAX = 512 * 1024;

export class BatchCapacity {
  #slots: number;
  #bytes = BATCH_BYTES_MAX;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /**
   * Reserves capacity for a command and its reply, and returns whether there was enough. `isFirst` reserves even if the
   * bytes exceed the capacity: a single command is no larger than a request, which fits alone.
   */
  tryReserve(command: unknown, repliedBytes = 0, isFirst = false): boolean {
    if (this.#slots <= 0) return false;
    const bytes = Buffer.byteLength(JSON.stringify(command)) + repliedBytes;
    if (bytes > this.#bytes && !isFirst) return false;
    this.#bytes -= bytes;
    this.#slots -= 1;
    return true;
  }

  /** Removes and returns the commands at a queue's front that fit. */
  take<T>(queue: T[]): T[] {
    let count = 0;
    while (count < queue.length && this.tryReserve(queue[count])) count += 1;
    return queue.splice(0, count);
  }
}
