import {
  type AnyBulkWriteOperation,
  type ClientSession,
  type Collection,
  type Db,
  type Document,
  MongoServerError,
} from "mongodb";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { BatchWriter, type BulkOutcome } from "./bulk-writer.ts";
import type { Collections } from "./collections.ts";
import { type ApprovalDocument, COLLECTIONS, type TransactionDocument } from "./documents.ts";
import { type Transaction, TRANSACTION_OPTIONS, transactionsOf } from "./transactions.ts";

/** The two records of a held payment, at one revision. */
export interface HeldRecords {
  readonly transaction: TransactionDocument;
  readonly approval: ApprovalDocument;
}

type PaymentCollections = Pick<Collections, "transactions" | "approvals">;

/**
 * Returns a payment's records at one revision, the transaction's or a later one. The approval is null if the payment
 * was never held, or if the approval is no longer retained.
 */
export async function recordsOf(
  { approvals, transactions }: PaymentCollections,
  read: TransactionDocument,
): Promise<{ readonly transaction: TransactionDocument; readonly approval: ApprovalDocument | null }> {
  let transaction = read;
  for (;;) {
    const { _id, approvalId, revision } = transaction;
    const approval = approvalId === null ? null : await approvals.findOne({ _id: approvalId });
    if (approval === null || approval.revision <= revision) return { transaction, approval };
    // Both records were rewritten after the transaction was read.
    const newer = await transactions.findOne({ _id });
    if (newer === null || newer.revision === revision) return { transaction, approval };
    transaction = newer;
  }
}

/** `contended`: nothing was written, since another process was writing one of the batch's records. */
type BatchOutcome = BulkOutcome | "contended";

/**
 * Writes the records of held payments, many payments per MongoDB transaction, so that no reader sees a payment's two
 * records at different revisions. A batch that conflicts with other writers is given up and its payments are written
 * one by one, so that no payment waits for another's records.
 */
export class HeldPaymentWriter {
  readonly #transactions: Collection<TransactionDocument>;
  readonly #approvals: Collection<ApprovalDocument>;
  readonly #inTransaction: Transaction;
  readonly #batches: BatchWriter<HeldRecords, BatchOutcome>;

  constructor(db: Db) {
    this.#transactions = db.collection(COLLECTIONS.transactions);
    this.#approvals = db.collection(COLLECTIONS.approvals);
    this.#inTransaction = transactionsOf(db.client);
    this.#batches = new BatchWriter((batch) => this.#writeBatch(batch));
  }

  get waiting(): number {
    return this.#batches.waiting;
  }

  /** Writes both records or neither; `duplicate` if the payment's record has the same or a later revision. */
  async write(records: HeldRecords): Promise<BulkOutcome> {
    const outcome = await this.#batches.write(records);
    return outcome === "contended" ? this.writeAlone(records, records.transaction.revision) : outcome;
  }

  /** Writes one payment's records over a record whose revision is lower than `below`. */
  async writeAlone(records: HeldRecords, below: number): Promise<BulkOutcome> {
    try {
      const written = await this.#inTransaction((session) => this.#replace([records], session, below));
      return written.length > 0 ? "written" : "duplicate";
    } catch (error) {
      if (isDuplicateKey(error)) return "duplicate";
      throw error;
    }
  }

  async #writeBatch(batch: readonly HeldRecords[]): Promise<PromiseSettledResult<BatchOutcome>[]> {
    const all = (outcomeOf: (records: HeldRecords) => BatchOutcome) =>
      batch.map((records) => ({ status: "fulfilled", value: outcomeOf(records) }) as const);
    const { client } = this.#transactions.db;
    return client.withSession(async (session) => {
      session.startTransaction(TRANSACTION_OPTIONS);
      try {
        const written = new Set(await this.#replace(batch, session));
        await session.commitTransaction();
        return all((records) => (written.has(records) ? "written" : "duplicate"));
      } catch (error) {
        if (session.inTransaction()) await session.abortTransaction();
        if (isContention(error)) return all(() => "contended");
        throw error;
      }
    });
  }

  /** Replaces records older than the batch's or than `below`, a payment's in revision order; returns those written. */
  async #replace(
    batch: readonly HeldRecords[],
    session: ClientSession,
    below: number | null = null,
  ): Promise<HeldRecords[]> {
    const ids = batch.map(({ transaction }) => transaction._id);
    const found = await this.#transactions
      .find({ _id: { $in: ids } }, { projection: { revision: 1 }, session })
      .toArray();
    const revisions = new Map(found.map(({ _id, revision }) => [_id, revision]));
    const newer = batch
      .toSorted((a, b) => a.transaction.revision - b.transaction.revision)
      .filter(({ transaction: { _id, revision } }) => {
        if ((revisions.get(_id) ?? 0) >= (below ?? revision)) return false;
        revisions.set(_id, revision);
        return true;
      });
    if (newer.length === 0) return newer;
    await this.#transactions.bulkWrite(
      newer.map(({ transaction }) => replacing(transaction)),
      { session },
    );
    await this.#approvals.bulkWrite(
      newer.map(({ approval }) => replacing(approval)),
      { session },
    );
    return newer;
  }
}

/** Whether other writers wrote the same records, or an idempotency key belongs to another payment. */
const isContention = (error: unknown): boolean =>
  isDuplicateKey(error) ||
  (error instanceof MongoServerError && error.hasErrorLabel("TransientTransactionError"));

function replacing<T extends Document & { _id: string }>(record: T): AnyBulkWriteOperation<T>;
function replacing(record: Document & { _id: string }): AnyBulkWriteOperation<Document & { _id: string }> {
  const { _id, ...replacement } = record;
  return { replaceOne: { filter: { _id }, replacement, upsert: true } };
}
