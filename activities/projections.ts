import {
  type AnyBulkWriteOperation,
  type Collection,
  type Db,
  type Document,
  type Filter,
  MongoServerError,
} from "mongodb";
import type { Payment } from "../src/domain/agent/payment.ts";
import type { AgentProfile, WrittenSummary } from "../src/domain/agent/state.ts";
import { BulkWriter } from "./bulk-writer.ts";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "./documents.ts";
import { COLLECTIONS } from "./documents.ts";
import { ensureJournalIndexes, type EventJournal } from "./journal.ts";
import { ensureListIndexes } from "./newest-first.ts";
import type { Projections } from "./ports.ts";
import { approvalDocument, transactionDocument } from "./records.ts";

/**
 * A payment's idempotency key stands on another transaction already. The actor should never have accepted it, so it
 * is not confirmed, and the sweep that keeps failing shows it to operators.
 */
export class DuplicateIdempotencyKey extends Error {
  override readonly name = "DuplicateIdempotencyKey";
}

/** Projections in MongoDB, acknowledged by the journal of a majority. */
export class MongoProjections implements Projections {
  readonly #transactions: RevisedRecords<TransactionDocument>;
  readonly #approvals: RevisedRecords<ApprovalDocument>;
  readonly #agentWrites: BulkWriter<AgentDocument>;
  readonly #journal: EventJournal;
  readonly #onPaymentWritten: (payment: Payment) => void;

  /** `onPaymentWritten`: at most once for each revision, whoever else tries to write it, too. */
  constructor(db: Db, journal: EventJournal, onPaymentWritten: (payment: Payment) => void = () => undefined) {
    this.#journal = journal;
    this.#onPaymentWritten = onPaymentWritten;
    this.#transactions = new RevisedRecords(db.collection<TransactionDocument>(COLLECTIONS.transactions));
    this.#approvals = new RevisedRecords(db.collection<ApprovalDocument>(COLLECTIONS.approvals));
    this.#agentWrites = new BulkWriter(db.collection<AgentDocument>(COLLECTIONS.agents));
  }

  async writePayment(profile: AgentProfile, payment: Payment): Promise<void> {
    const approval = approvalDocument(profile, payment);
    await Promise.all([
      this.#writeTransaction(profile, payment),
      approval === null ? undefined : this.#approvals.write(approval),
    ]);
  }

  async #writeTransaction(profile: AgentProfile, payment: Payment): Promise<void> {
    const isWritten = await this.#transactions.write(transactionDocument(profile, payment));
    if (isWritten) this.#onPaymentWritten(payment);
  }

  /** Writes that wait for their turn. */
  get waiting(): number {
    return this.#transactions.waiting + this.#approvals.waiting + this.#agentWrites.waiting;
  }

  async writeAgentSummary(agentId: string, summary: WrittenSummary): Promise<void> {
    const filter = { _id: agentId, revision: { $lt: summary.revision } };
    await Promise.all([
      this.#agentWrites.write({ updateOne: { filter, update: [{ $set: agentFields(summary) }] } }),
      this.#journal.tellLifecycle(agentId, summary.events ?? []),
    ]);
  }
}

/**
 * Writes an agent's record as its actor has it, also over another one of the same revision; never over a later one.
 * Whether it was written.
 */
export async function overwriteAgentSummary(
  agents: Collection<AgentDocument>,
  agentId: string,
  summary: WrittenSummary,
): Promise<boolean> {
  const filter = { _id: agentId, revision: { $lte: summary.revision } };
  const { matchedCount } = await agents.updateOne(filter, [{ $set: agentFields(summary) }]);
  return matchedCount > 0;
}

/** The same for the records of a payment. */
export async function overwritePayment(db: Db, profile: AgentProfile, payment: Payment): Promise<boolean> {
  const transactions = db.collection<TransactionDocument>(COLLECTIONS.transactions);
  const approvals = db.collection<ApprovalDocument>(COLLECTIONS.approvals);
  const approval = approvalDocument(profile, payment);
  const isWritten = await overwrite(transactions, transactionDocument(profile, payment));
  return (approval === null || (await overwrite(approvals, approval))) && isWritten;
}

async function overwrite<T extends Revised>(collection: Collection<T>, record: T): Promise<boolean>;
async function overwrite(collection: Collection<Revised>, record: Revised): Promise<boolean> {
  const { _id, ...replacement } = record;
  const filter = { _id, revision: { $lte: record.revision } };
  try {
    await collection.replaceOne(filter, replacement, { upsert: true });
    return true;
  } catch (error) {
    // A later one is there, or its idempotency key stands on another record.
    if (error instanceof MongoServerError && error.code === DUPLICATE_KEY) return false;
    throw error;
  }
}

const DUPLICATE_KEY = 11_000;

/**
 * A pipeline's `$set`, since the key is chosen from what the record holds; all else is taken literally. These fields and no
 * others, whatever a summary brings along: it comes through Temporal, and whose an agent is, where it lies, its wallet and
 * its keys' hashes are written when it is created, by the server, and never again.
 */
function agentFields(summary: WrittenSummary): Document {
  const { archivedAt, authenticatedAt, keyId, updatedAt } = summary;
  const written = {
    name: summary.name,
    lifecycle: summary.lifecycle,
    walletDetached: summary.walletDetached,
    policy: summary.policy,
    policyVersion: summary.policyVersion,
    spentCents: summary.spentCents,
    reservedCents: summary.reservedCents,
    revision: summary.revision,
    archivedAt: dateOrNull(archivedAt),
    authenticatedAt: dateOrNull(authenticatedAt),
  };
  const literal = Object.entries(written).map(([name, value]) => [name, { $literal: value }] as const);
  return {
    ...Object.fromEntries(literal),
    // What people change of the record itself is no business of the actor's, and may be newer.
    updatedAt: { $max: ["$updatedAt", { $literal: new Date(updatedAt) }] },
    ...(keyId === undefined ? {} : keyFields(keyId)),
  };
}

/** The key that the actor names: the record's own, or the one among the candidates that it has chosen. */
function keyFields(keyId: string | null): Document {
  const candidates = { $ifNull: ["$candidateKeys", []] };
  const those = (cond: Document) => ({ $filter: { input: candidates, cond } });
  const others = those({ $ne: ["$$this.id", keyId] });
  if (keyId === null) return { key: { $literal: null }, candidateKeys: candidates };
  const chosen = { $ifNull: [{ $first: those({ $eq: ["$$this.id", keyId] }) }, null] };
  return { key: { $cond: [{ $eq: ["$key.id", keyId] }, "$key", chosen] }, candidateKeys: others };
}

const dateOrNull = (at: number | null | undefined): Date | null =>
  typeof at === "number" ? new Date(at) : null;

interface Revised extends Document {
  _id: string;
  revision: number;
}

/** Writes of one record that race at the most; each round one of them wins. */
const RACING_WRITES_MAX = 8;

/** Records of which the highest revision stands, whatever order the writes arrive in. */
class RevisedRecords<T extends Revised> {
  readonly #collection: Collection<T>;
  readonly #writes: BulkWriter<T>;

  constructor(collection: Collection<T>) {
    this.#collection = collection;
    this.#writes = new BulkWriter(collection);
  }

  get waiting(): number {
    return this.#writes.waiting;
  }

  /**
   * Inserts, or replaces an older revision. A duplicate key means that the record is there at the same or a later
   * revision, that another write was inserting it at the same moment, or that its unique key belongs to another.
   * Whether this one was written.
   */
  async write(record: T): Promise<boolean> {
    for (let round = 0; round < RACING_WRITES_MAX; round += 1) {
      if ((await this.#writes.write(replaceOlder(record))) === "written") return true;
      const own = await this.#collection.findOne(byId<T>(record._id), { projection: { revision: 1 } });
      if (own === null) throw new DuplicateIdempotencyKey(`record ${record._id}`);
      if (Number(own["revision"]) >= record.revision) return false;
    }
    throw new Error(`record ${record._id} could not be written against others`);
  }
}

function byId<T extends Revised>(id: string): Filter<T>;
function byId(id: string): Filter<Revised> {
  return { _id: id };
}

function replaceOlder<T extends Revised>(record: T): AnyBulkWriteOperation<T>;
function replaceOlder(record: Revised): AnyBulkWriteOperation<Revised> {
  if (record.revision === 1) return { insertOne: { document: record } };
  const { _id, ...replacement } = record;
  return {
    replaceOne: { filter: { _id, revision: { $lt: record.revision } }, replacement, upsert: true },
  };
}

/** By which an agent's payments to one recipient are found. */
export const RECIPIENT_INDEX = "agent_compared_recipient";

/** The indexes behind the lists, those that rules and metrics look things up by, and the unique one behind every idempotency key. */
export async function ensureProjectionIndexes(db: Db): Promise<void> {
  await Promise.all([
    ensureJournalIndexes(db),
    ensureListIndexes(db),
    db.collection(COLLECTIONS.transactions).createIndexes([
      { key: { agentId: 1, keyHash: 1 }, unique: true },
      {
        // What rules look for: with the status, so that none that is passed over is read.
        key: { agentId: 1, rail: 1, comparedMerchant: 1, status: 1, createdAt: -1 },
        name: RECIPIENT_INDEX,
      },
      {
        key: { agentId: 1, deniedAt: -1, _id: -1 },
        partialFilterExpression: { deniedAt: { $type: "date" } },
      },
      // What has no end yet, over all organizations; the status first, since the planner looks for it.
      {
        key: { status: 1, rail: 1 },
        partialFilterExpression: { status: "pending" },
        name: "open_by_rail",
      },
    ]),
    db.collection(COLLECTIONS.approvals).createIndexes([
      // How many payments are on hold, and since when, over all organizations.
      {
        key: { state: 1, createdAt: 1, rail: 1 },
        partialFilterExpression: { state: "pending" },
        name: "on_hold_since",
      },
      { key: { transactionId: 1 } },
    ]),
    db.collection(COLLECTIONS.agents).createIndexes([
      { key: { projectId: 1, teamId: 1 } },
      {
        key: { "key.hash": 1 },
        unique: true,
        partialFilterExpression: { "key.hash": { $type: "string" } },
      },
    ]),
  ]);
}
