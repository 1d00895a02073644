/**
 * Bytes of JSON that go in one update at the most. The engine repeats an update in what its worker answers, and ends a workflow for good
 * that answers with a message above its bound (2 MiB).
 */
const BATCH_BYTES_MAX = 512 * 1024;

/** What fits one update beside what is in it already. */
export class BatchRoom {
  #places: number;
  #bytes = BATCH_BYTES_MAX;

  constructor(places: number) {
    this.#places = places;
  }

  /** Takes from the queue's front what fits, with its replies where those are long, leaving `spared` places free. */
  take<T, C>(
    queue: T[],
    commandOf: (each: T) => C,
    repliedBytesOf: (command: C) => number = () => 0,
    spared = 0,
  ): T[] {
    let count = 0;
    for (const each of queue) {
      if (this.#places - count <= spared) break;
      const command = commandOf(each);
      const bytes = Buffer.byteLength(JSON.stringify(command)) + repliedBytesOf(command);
      if (bytes > this.#bytes) break;
      this.#bytes -= bytes;
      count += 1;
    }
    this.#places -= count;
    return queue.splice(0, count);
  }

  /** The same, and the first one in any case: none is larger than a request, which alone fits. */
  takeSome<T, C>(queue: T[], commandOf: (each: T) => C, repliedBytesOf?: (command: C) => number): T[] {
    const taken = this.take(queue, commandOf, repliedBytesOf);
    if (taken.length > 0 || this.#places === 0) return taken;
    this.#places -= 1;
    return queue.splice(0, 1);
  }
}
