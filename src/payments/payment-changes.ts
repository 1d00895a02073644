import { setTimeout as sleep } from "node:timers/promises";
import type { ChangeStream, Collection, Document } from "mongodb";
import { Timestamp } from "mongodb";
import type { TransactionDocument } from "../store/documents.ts";

const LINGER_MS = 10_000;
/** Delay before a broken stream is opened again. */
const REOPENED_AFTER_MS = 500;
/** Time within which changes are combined into one response of MongoDB; requested at once, each would cost a read. */
const GATHERED_MS = 20;

/** Matches records that are rewritten. Inserts are ignored: no caller can wait for a record that does not exist yet. */
const WRITTEN_AGAIN = [
  { $match: { operationType: { $in: ["replace", "update"] } } },
  { $project: { documentKey: 1 } },
];

interface Changed extends Document {
  documentKey: { _id: string };
}

export interface PaymentWatch {
  /** Resolves at the first change since the watch began or last resolved, or after `withinMs`. */
  changed(withinMs: number): Promise<void>;
  end(): void;
}

/**
 * Signals changes of one collection's records by any process. All waiting calls of this process share one MongoDB
 * change stream, open only while any call waits. While the stream is down, waiting calls are woken to poll.
 */
export class PaymentChanges<T extends Document = TransactionDocument> {
  readonly #records: Collection<T>;
  readonly #onError: (error: unknown) => void;
  readonly #waiting = new Map<string, Set<() => void>>();
  #stream: ChangeStream<T, Changed> | null = null;
  #opening: Promise<void> | null = null;
  #closing: NodeJS.Timeout | null = null;
  #reopening: NodeJS.Timeout | null = null;
  #ended = false;

  constructor(records: Collection<T>, onError: (error: unknown) => void) {
    this.#records = records;
    this.#onError = onError;
  }

  /** Whether calls must stop waiting because the process is about to end. */
  get isOver(): boolean {
    return this.#ended;
  }

  /** Watches a payment. After this resolves, the watch reports every change that a later read could miss. */
  async watch(transactionId: string): Promise<PaymentWatch> {
    let hasChanged = false;
    let wake: (() => void) | null = null;
    const onChange = (): void => {
      hasChanged = true;
      wake?.();
    };
    this.#add(transactionId, onChange);
    await this.#opened();
    return {
      changed: async (withinMs) => {
        if (!hasChanged && !this.#ended) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, Math.max(0, withinMs));
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
          wake = null;
        }
        hasChanged = false;
      },
      end: () => this.#remove(transactionId, onChange),
    };
  }

  /** Wakes all waiting calls. Later calls return at once. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#wakeAll();
    if (this.#closing !== null) clearTimeout(this.#closing);
    if (this.#reopening !== null) clearTimeout(this.#reopening);
    const stream = this.#stream;
    this.#stream = null;
    await stream?.close().catch(this.#onError);
  }

  #add(transactionId: string, onChange: () => void): void {
    const those = this.#waiting.get(transactionId) ?? new Set();
    this.#waiting.set(transactionId, those.add(onChange));
    if (this.#closing !== null) clearTimeout(this.#closing);
    this.#closing = null;
  }

  #remove(transactionId: string, onChange: () => void): void {
    const those = this.#waiting.get(transactionId);
    those?.delete(onChange);
    if (those?.size === 0) this.#waiting.delete(transactionId);
    if (this.#waiting.size > 0 || this.#ended || this.#closing !== null) return;
    this.#closing = setTimeout(() => {
      this.#closing = null;
      const stream = this.#stream;
      this.#stream = null;
      void stream?.close().catch(this.#onError);
    }, LINGER_MS).unref();
  }

  async #opened(): Promise<void> {
    if (this.#stream !== null || this.#reopening !== null || this.#ended) return;
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    await this.#opening;
  }

  /** Opens the stream at an operation time that the database reports, so that no change is missed before it begins. */
  async #open(): Promise<void> {
    try {
      const { operationTime } = await this.#records.db.command({ ping: 1 });
      const options = operationTime instanceof Timestamp ? { startAtOperationTime: operationTime } : {};
      const stream = this.#records.watch<T, Changed>(WRITTEN_AGAIN, options);
      this.#stream = stream;
      void this.#follow(stream);
    } catch (error) {
      this.#broken(error);
    }
  }

  async #follow(stream: ChangeStream<T, Changed>): Promise<void> {
    let reason: unknown = new Error("the change stream ended unexpectedly");
    try {
      for await (const { documentKey } of stream) {
        this.#wake(documentKey._id);
        if (stream.bufferedCount() === 0) await sleep(GATHERED_MS, undefined, { ref: false });
      }
    } catch (error) {
      reason = error;
    }
    // Closed on purpose, since no call waits any more.
    if (this.#stream !== stream) return;
    this.#stream = null;
    await stream.close().catch(() => undefined);
    this.#broken(reason);
  }

  /** Reports the error and schedules a new stream; waiting calls poll until then. */
  #broken(error: unknown): void {
    if (this.#ended) return;
    this.#onError(error);
    this.#reopening = setTimeout(() => {
      this.#reopening = null;
      if (this.#waiting.size > 0) void this.#reopen();
    }, REOPENED_AFTER_MS).unref();
  }

  async #reopen(): Promise<void> {
    await this.#opened();
    this.#wakeAll();
  }

  #wake(transactionId: string): void {
    for (const onChange of this.#waiting.get(transactionId) ?? []) onChange();
  }

  #wakeAll(): void {
    for (const transactionId of this.#waiting.keys()) this.#wake(transactionId);
  }
}
