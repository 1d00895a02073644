import type { AnyBulkWriteOperation, Collection, Document } from "mongodb";

/** Interval at which the last uses of keys are written in one bulk. */
const WRITE_EVERY_MS = 5_000;

/** Records keys' last uses without a write per request. A crash loses a few seconds of them. */
export class KeyUse<T extends Document> {
  readonly #collection: Collection<T>;
  readonly #clock: () => Date;
  readonly #onError: (error: unknown) => void;
  #used = new Map<string, AnyBulkWriteOperation<T>>();
  #timer: NodeJS.Timeout | null = null;

  constructor(collection: Collection<T>, clock: () => Date, onError: (error: unknown) => void) {
    this.#collection = collection;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** `write` returns the operation that records a use of the key. */
  used(keyId: string, write: (at: Date) => AnyBulkWriteOperation<T>): void {
    this.#used.set(keyId, write(this.#clock()));
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_EVERY_MS);
  }

  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const writes = [...this.#used.values()];
    this.#used = new Map();
    if (writes.length === 0) return;
    await this.#collection.bulkWrite(writes, { ordered: false }).catch(this.#onError);
  }
}
