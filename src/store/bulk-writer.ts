import type { AnyBulkWriteOperation, Collection, Document } from "mongodb";
import { MongoBulkWriteError } from "mongodb";
import { DUPLICATE_KEY } from "../lib/duplicate-key.ts";
import { withTimeout } from "../lib/with-timeout.ts";

/** End of one of the combined operations. */
export type BulkOutcome = "written" | "duplicate";

interface Waiting<O, R> {
  readonly operation: O;
  readonly resolve: (outcome: R) => void;
  readonly reject: (error: unknown) => void;
}

/** Operations in one bulk at the most, and bulks under way at once: further operations wait for the next. */
const BULK_OPERATIONS_MAX = 500;
const BULKS_IN_FLIGHT_MAX = 2;

/** Number of operations that do not linger. */
const LINGERING_MAX = 25;

/**
 * Deadline of a bulk. The driver can wait for ever with one that it begins just as its connection closes; the writes
 * behind it must not.
 */
const BULK_MS = 10_000;

interface BatchOptions {
  /** Wait of a batch's first operation for others; for writes that no caller waits for. */
  readonly lingerMs?: number;
}

/**
 * Combines single writes from all requests into batches: what arrives while one is under way goes together in the next. Each caller
 * waits for its own operation.
 */
export class BatchWriter<O, R> {
  readonly #writeAll: (operations: readonly O[]) => Promise<readonly PromiseSettledResult<R>[]>;
  readonly #lingerMs: number;
  #waiting: Waiting<O, R>[] = [];
  #inFlight = 0;
  #scheduled = false;
  #timer: NodeJS.Timeout | null = null;

  /** `writeAll`: what became of each operation of a batch, in their order; what it throws is every operation's failure. */
  constructor(
    writeAll: (operations: readonly O[]) => Promise<readonly PromiseSettledResult<R>[]>,
    { lingerMs = 0 }: BatchOptions = {},
  ) {
    this.#writeAll = writeAll;
    this.#lingerMs = lingerMs;
  }

  /** Operations that wait for their turn. */
  get waiting(): number {
    return this.#waiting.length;
  }

  write(operation: O): Promise<R> {
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
      const outcomes = await withTimeout(BULK_MS, this.#writeAll(operations));
      batch.forEach(({ reject, resolve }, index) => {
        const outcome = outcomes[index];
        if (outcome?.status === "fulfilled") resolve(outcome.value);
        else reject(outcome?.reason ?? new Error("a batch without an outcome for each operation"));
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      this.#inFlight -= 1;
      this.#schedule();
    }
  }
}

/**
 * Combines writes to one collection into unordered bulks, acknowledged as the collection's write concern says. A duplicate key is an
 * outcome, since conditional upserts and once-only inserts are made of it.
 */
export class BulkWriter<T extends Document> extends BatchWriter<AnyBulkWriteOperation<T>, BulkOutcome> {
  constructor(collection: Collection<T>, options?: BatchOptions) {
    super((operations) => bulkWrite(collection, operations), options);
  }
}

const ended = <R>(value: R): PromiseFulfilledResult<R> => ({ status: "fulfilled", value });

/**
 * Runs an unordered bulk, in which each operation fails or succeeds for itself, and the driver names those that
 * failed. An error that names none (a lost connection, a write concern that was not met) says nothing about any of
 * them: it is everyone's failure.
 */
async function bulkWrite<T extends Document>(
  collection: Collection<T>,
  operations: readonly AnyBulkWriteOperation<T>[],
): Promise<PromiseSettledResult<BulkOutcome>[]> {
  try {
    await collection.bulkWrite(operations, { ordered: false });
    return operations.map(() => ended("written"));
  } catch (error) {
    const failures = failuresNamedBy(error);
    if (failures === null) throw error;
    return operations.map((_operation, index) => {
      const code = failures.get(index);
      if (code === undefined) return ended("written");
      return code === DUPLICATE_KEY ? ended("duplicate") : { status: "rejected", reason: error };
    });
  }
}

/** The codes of the operations that failed, by their index; null when the error does not name them. */
function failuresNamedBy(error: unknown): Map<number, number> | null {
  if (!(error instanceof MongoBulkWriteError)) return null;
  // Typed as one or more, it is missing where a lost connection was wrapped.
  const failures = [error.writeErrors].flat().filter((failure) => failure !== undefined);
  if (failures.length === 0 || error.result.getWriteConcernError() !== undefined) return null;
  return new Map(failures.map(({ code, index }) => [index, code]));
}
