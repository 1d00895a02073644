import type { AnyBulkWriteOperation, Collection, Document } from "mongodb";
import { MongoBulkWriteError } from "mongodb";
import { DUPLICATE_KEY } from "../lib/duplicate-key.ts";
import { withTimeout } from "../lib/with-timeout.ts";

/** How one of the combined operations ended. */
export type BulkOutcome = "written" | "duplicate";

interface Waiting<T extends Document> {
  readonly operation: AnyBulkWriteOperation<T>;
  readonly resolve: (outcome: BulkOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Operations in one bulk at the most, and bulks under way at once: further operations wait for the next. */
const BULK_OPERATIONS_MAX = 500;
const BULKS_IN_FLIGHT_MAX = 2;

/** So many do not linger. */
const LINGERING_MAX = 25;

/**
 * How long a bulk may take. The driver can wait for ever with one that it begins just as its connection closes; the
 * writes behind it must not.
 */
const BULK_MS = 10_000;

/**
 * Combines single writes to one collection, from all requests, into unordered bulks: what arrives while one is under way goes
 * together in the next. With `lingerMs` the first write of a bulk waits so long for others; for writes that no caller waits for.
 * Each caller waits for its own operation, acknowledged as the collection's write concern says. A duplicate key is an outcome,
 * since conditional upserts and once-only inserts are made of it.
 */
export class BulkWriter<T extends Document> {
  readonly #collection: Collection<T>;
  readonly #lingerMs: number;
  #waiting: Waiting<T>[] = [];
  #inFlight = 0;
  #scheduled = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(collection: Collection<T>, { lingerMs = 0 }: { readonly lingerMs?: number } = {}) {
    this.#collection = collection;
    this.#lingerMs = lingerMs;
  }

  /** Operations that wait for their turn. */
  get waiting(): number {
    return this.#waiting.length;
  }

  write(operation: AnyBulkWriteOperation<T>): Promise<BulkOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation, resolve, reject });
      this.#schedule();
      if (this.#waiting.length >= LINGERING_MAX) this.flush();
    });
  }

  /** Writes at once what waits for a larger batch. */
  flush(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#go();
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= BULKS_IN_FLIGHT_MAX || this.#waiting.length === 0) return;
    this.#scheduled = true;
    if (this.#lingerMs === 0) setImmediate(() => this.#go());
    else this.#timer = setTimeout(() => this.#go(), this.#lingerMs);
  }

  #go(): void {
    this.#timer = null;
    this.#scheduled = false;
    // `#flush` settles everyone whatever happens: it never rejects.
    void this.#flush();
  }

  async #flush(): Promise<void> {
    const batch = this.#waiting.splice(0, BULK_OPERATIONS_MAX);
    if (batch.length === 0) return;
    this.#inFlight += 1;
    try {
      const operations = batch.map((waiting) => waiting.operation);
      await withTimeout(BULK_MS, this.#collection.bulkWrite(operations, { ordered: false }));
      for (const waiting of batch) waiting.resolve("written");
    } catch (error) {
      try {
        settleFailed(batch, error);
      } catch (defect) {
        for (const waiting of batch) waiting.reject(defect);
      }
    } finally {
      this.#inFlight -= 1;
      this.#schedule();
    }
  }
}

/**
 * In an unordered bulk each operation fails or succeeds for itself, and the driver names those that failed. An error
 * that names none (a lost connection, a write concern that was not met) says nothing about any of them: it is
 * everyone's failure.
 */
function settleFailed<T extends Document>(batch: readonly Waiting<T>[], error: unknown): void {
  const failures = failuresNamedBy(error);
  batch.forEach((waiting, index) => {
    if (failures === null) return waiting.reject(error);
    const code = failures.get(index);
    if (code === undefined) return waiting.resolve("written");
    return code === DUPLICATE_KEY ? waiting.resolve("duplicate") : waiting.reject(error);
  });
}

/** The codes of the operations that failed, by their index; null when the error does not name them. */
function failuresNamedBy(error: unknown): Map<number, number> | null {
  if (!(error instanceof MongoBulkWriteError)) return null;
  // Typed as one or more, it is missing where a lost connection was wrapped.
  const failures = [error.writeErrors].flat().filter((failure) => failure !== undefined);
  if (failures.length === 0 || error.result.getWriteConcernError() !== undefined) return null;
  return new Map(failures.map(({ code, index }) => [index, code]));
}
