import { type Db, MongoServerError, Timestamp } from "mongodb";

/** A payment that reached its rail, and when MongoDB wrote the entry without which it does not. */
export interface SentEntry {
  readonly transactionId: string;
  readonly at: Date;
}

/** The first entry of each rail: a capture of the card network, and the first transaction of a wallet. */
const CAPTURE = /^capture\/(?<transactionId>.+)$/;
const SPEND = /\/spend\/(?<transactionId>[^/]+)\/1$/;
const COLLECTIONS = ["sandbox_card_ledger", "chain_transactions"];
const CAPTURED = ["captured", "authorized"];

/** MongoDB's code for a time that its log no longer has, as after a restore. */
const HISTORY_LOST = 286;
const AWAIT_MS = 500;
/** Reads without a change after which the log was read to its end. */
const EMPTY_READS = 2;

/** Returns MongoDB's time now, from which a later read begins. */
export async function timeOf(db: Db): Promise<Timestamp> {
  const { operationTime }: { operationTime?: unknown } = await db.command({ ping: 1 });
  if (!(operationTime instanceof Timestamp)) throw new Error("MongoDB is no replica set");
  return operationTime;
}

/**
 * Returns the payments sent since then, each once; null if MongoDB was restored meanwhile. Times are those of MongoDB's own
 * log: a process that was stopped before it wrote has an older time in what it writes.
 */
export async function sentSince(
  db: Db,
  startAtOperationTime: Timestamp,
): Promise<readonly SentEntry[] | null> {
  const $match = { operationType: { $in: ["insert", "replace"] }, "ns.coll": { $in: COLLECTIONS } };
  const changes = db.watch([{ $match }], { startAtOperationTime, maxAwaitTimeMS: AWAIT_MS });
  const sent = new Map<string, SentEntry>();
  try {
    for (let empty = 0; empty < EMPTY_READS;) {
      const change = await changes.tryNext();
      empty = change === null ? empty + 1 : 0;
      if (change?.operationType !== "insert" && change?.operationType !== "replace") continue;
      const transactionId = sentIn(change.fullDocument);
      if (transactionId === null || sent.has(transactionId)) continue;
      if (change.wallTime === undefined) throw new Error("MongoDB tells no time of its changes");
      sent.set(transactionId, { transactionId, at: change.wallTime });
    }
    return [...sent.values()];
  } catch (error) {
    if (error instanceof MongoServerError && error.code === HISTORY_LOST) return null;
    throw error;
  } finally {
    await changes.close();
  }
}

/** Returns the payment that a document sends; null if it is a fence or a refusal, or of no payment. */
function sentIn({ _id, hash, status }: Readonly<Record<string, unknown>>): string | null {
  const id = String(_id);
  if (CAPTURED.includes(String(status))) return CAPTURE.exec(id)?.groups?.["transactionId"] ?? null;
  return typeof hash === "string" ? (SPEND.exec(id)?.groups?.["transactionId"] ?? null) : null;
}
