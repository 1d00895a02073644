import type { AnyBulkWriteOperation, Collection, Document } from "mongodb";
import { MongoBulkWriteError } from "mongodb";
import { DUPLICATE_KEY } from "../lib/duplicate-key.ts";
import { withTimeout } from "../lib/with-timeout.ts";

export type BulkOutcome = "written" | "duplicate";

interface Waiting<O, R> {
  readonly operation: O;
  readonly resolve: (outcome: R) => void;
  readonly reject: (error: unknown) => void;
}

/** Maximum number of operations per bulk, and of bulks in flight. */
const BULK_OPERATIONS_MAX = 500;
const BULKS_IN_FLIGHT_MAX = 2;

/** Number of waiting operations from which a batch is written without lingering. */
const LINGERING_MAX = 25;

/** Timeout of a bulk, which the driver may otherwise await for ever if the connection closes as it begins. */
const BULK_TIMEOUT_MS = 10_000;

interface BatchOptions {
  /** Time that a batch's first operation waits for more. For writes that no caller waits for. */
  readonly lingerMs?: number;
}

/**
 * Combines single writes from all requests into batches: writes that arrive while a batch is in flight form the next.
 * Each caller waits for its own operation.
 */
export class BatchWriter<O, R> {
  readonly #writeAll: (operations: readonly O[]) => Promise<readonly PromiseSettledResult<R>[]>;
  readonly #lingerMs: number;
  #waiting: Waiting<O, R>[] = [];
  #inFlight = 0;
  #scheduled = false;
  #timer: NodeJS.Timeout | null = null;

  /** `writeAll` returns the outcomes of a batch's operations, in their order; if it throws, every operation fails. */
  constructor(
    writeAll: (operations: readonly O[]) => Promise<readonly PromiseSettledResult<R>[]>,
    { lingerMs = 0 }: BatchOptions = {},
  ) {
    this.#writeAll = writeAll;
    this.#lingerMs = lingerMs;
  }

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
    // `#writeBatch` never rejects: it settles every operation of the batch.
    void this.#writeBatch();
  }

  async #writeBatch(): Promise<void> {
    const batch = this.#waiting.splice(0, BULK_OPERATIONS_MAX);
    if (batch.length === 0) return;
    this.#inFlight += 1;
    try {
      const operations = batch.map((waiting) => waiting.operation);
      const outcomes = await withTimeout(BULK_TIMEOUT_MS, this.#writeAll(operations));
      batch.forEach(({ reject, resolve }, index) => {
        const outcome = outcomes[index];
        if (outcome?.status === "fulfilled") resolve(outcome.value);
        else reject(outcome?.reason ?? new Error("a batch returned fewer outcomes than operations"));
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
 * Combines writes to one collection into unordered bulks, acknowledged with the collection's write concern. A duplicate
 * key is an outcome rather than an error, since conditional upserts and once-only inserts rely on it.
 */
export class BulkWriter<T extends Document> extends BatchWriter<AnyBulkWriteOperation<T>, BulkOutcome> {
  constructor(collection: Collection<T>, options?: BatchOptions) {
    super((operations) => bulkWrite(collection, operations), options);
  }
}

const ended = <R>(value: R): PromiseFulfilledResult<R> => ({ status: "fulfilled", value });

/**
 * Runs an unordered bulk. Each operation succeeds or fails by itself, and the driver names those that failed. An error
 * that names none (a lost connection, an unmet write concern) says nothing about any operation, so it fails all of
 * them.
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

/** Returns the error codes of the failed operations by index; null if the error does not name them. */
function failuresNamedBy(error: unknown): Map<number, number> | null {
  if (!(error instanceof MongoBulkWriteError)) return null;
  // The driver's types promise `writeErrors`, but a wrapped connection error lacks it.
  const failures = [error.writeErrors].flat().filter((failure) => failure !== undefined);
  if (failures.length === 0 || error.result.getWriteConcernError() !== undefined) return null;
  return new Map(failures.map(({ code, index }) => [index, code]));
}
