import type { AnyBulkWriteOperation, Collection, Db, Document, Filter } from "mongodb";
import type { Payment } from "../src/domain/agent/payment.ts";
import type { AgentProfile, AgentSummary } from "../src/domain/agent/state.ts";
import { BulkWriter } from "./bulk-writer.ts";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "./documents.ts";
import { COLLECTIONS } from "./documents.ts";
import type { Projections } from "./ports.ts";

/**
 * A payment's idempotency key stands on another transaction already. The actor should never have accepted it, so it
 * is not confirmed, and the sweep that keeps failing shows it to operators.
 */
export class DuplicateIdempotencyKey extends Error {
  override readonly name = "DuplicateIdempotencyKey";
}

/** The transaction's record as the payment stands. */
export function transactionDocument(profile: AgentProfile, payment: Payment): TransactionDocument {
  const { request, denial, approval } = payment;
  return {
    _id: request.transactionId,
    organizationId: profile.organizationId,
    projectId: profile.projectId,
    teamId: profile.teamId,
    agentId: profile.agentId,
    agentName: profile.name,
    keyHash: request.keyHash,
    payloadHash: request.payloadHash,
    sequence: payment.sequence,
    createdAt: new Date(payment.createdAt),
    merchant: request.recipient,
    merchantCategory: request.merchantCategory,
    amountCents: request.amountCents,
    currency: request.currency,
    rail: request.rail,
    status: payment.status,
    purpose: request.purpose,
    denialReason: denial?.reason ?? null,
    denialCode: denial?.code ?? null,
    denialDetails: denialDetails(payment),
    deniedAt: dateOrNull(payment.deniedAt),
    feedback: approval?.feedback ?? null,
    onChainTxHash: payment.onChainTxHash,
    chainCaip2: payment.chainCaip2,
    approvalId: approval?.id ?? null,
    revision: payment.revision,
  };
}

/** The approval's record; null for a payment that was never held. */
export function approvalDocument(profile: AgentProfile, payment: Payment): ApprovalDocument | null {
  const { request, approval } = payment;
  if (approval === null) return null;
  return {
    _id: approval.id,
    transactionId: request.transactionId,
    organizationId: profile.organizationId,
    projectId: profile.projectId,
    teamId: profile.teamId,
    agentId: profile.agentId,
    agentName: profile.name,
    amountCents: request.amountCents,
    currency: request.currency,
    rail: request.rail,
    recipient: request.recipient,
    purpose: request.purpose,
    budgetContext: approval.budgetContext,
    flaggedByRuleTypes: [...approval.flaggedByRuleTypes],
    createdAt: new Date(payment.createdAt),
    expiresAt: new Date(approval.expiresAt),
    state: approval.resolution === null ? "pending" : "completed",
    resolution: approval.resolution,
    resolvedAt: dateOrNull(approval.resolvedAt),
    resolvedBy: approval.resolvedBy,
    feedback: approval.feedback,
    revision: payment.revision,
  };
}

function denialDetails(payment: Payment): TransactionDocument["denialDetails"] {
  const details = payment.denial?.details ?? null;
  if (details === null) return null;
  return { limit: details.limit, remaining: details.remaining, resetsAt: dateOrNull(details.resetsAt) };
}

const dateOrNull = (at: number | null): Date | null => (at === null ? null : new Date(at));

/** Projections in MongoDB, acknowledged by the journal of a majority. */
export class MongoProjections implements Projections {
  readonly #transactions: RevisedRecords<TransactionDocument>;
  readonly #approvals: RevisedRecords<ApprovalDocument>;
  readonly #agentWrites: BulkWriter<AgentDocument>;

  constructor(db: Db) {
    this.#transactions = new RevisedRecords(db.collection<TransactionDocument>(COLLECTIONS.transactions));
    this.#approvals = new RevisedRecords(db.collection<ApprovalDocument>(COLLECTIONS.approvals));
    this.#agentWrites = new BulkWriter(db.collection<AgentDocument>(COLLECTIONS.agents));
  }

  async writePayment(profile: AgentProfile, payment: Payment): Promise<void> {
    const approval = approvalDocument(profile, payment);
    await Promise.all([
      this.#transactions.write(transactionDocument(profile, payment)),
      approval === null ? undefined : this.#approvals.write(approval),
    ]);
  }

  async writeAgentSummary(agentId: string, summary: AgentSummary): Promise<void> {
    const { updatedAt, ...fields } = summary;
    const update = { $set: { ...fields, updatedAt: new Date(updatedAt) } };
    await this.#agentWrites.write({
      updateOne: { filter: { _id: agentId, revision: { $lt: summary.revision } }, update },
    });
  }
}

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

  /**
   * Inserts, or replaces an older revision. A duplicate key means that the record is there at the same or a later
   * revision, that another write was inserting it at the same moment, or that its unique key belongs to another.
   */
  async write(record: T): Promise<void> {
    for (let round = 0; round < RACING_WRITES_MAX; round += 1) {
      if ((await this.#writes.write(replaceOlder(record))) === "written") return;
      const own = await this.#collection.findOne(byId<T>(record._id), { projection: { revision: 1 } });
      if (own === null) throw new DuplicateIdempotencyKey(`record ${record._id}`);
      if (Number(own["revision"]) >= record.revision) return;
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

/** The indexes behind the lists, and the unique one behind every idempotency key. */
export async function ensureProjectionIndexes(db: Db): Promise<void> {
  const newestFirst = { createdAt: -1, _id: -1 } as const;
  await Promise.all([
    db.collection(COLLECTIONS.transactions).createIndexes([
      { key: { agentId: 1, keyHash: 1 }, unique: true },
      { key: { organizationId: 1, ...newestFirst } },
      { key: { agentId: 1, ...newestFirst } },
      {
        key: { agentId: 1, deniedAt: -1, _id: -1 },
        partialFilterExpression: { deniedAt: { $type: "date" } },
      },
    ]),
    db
      .collection(COLLECTIONS.approvals)
      .createIndexes([
        { key: { organizationId: 1, state: 1, ...newestFirst } },
        { key: { transactionId: 1 } },
      ]),
    db.collection(COLLECTIONS.agents).createIndexes([
      { key: { organizationId: 1, ...newestFirst } },
      {
        key: { "key.hash": 1 },
        unique: true,
        partialFilterExpression: { "key.hash": { $type: "string" } },
      },
    ]),
    db.collection(COLLECTIONS.projects).createIndex({ organizationId: 1, ...newestFirst }),
    db.collection(COLLECTIONS.teams).createIndex({ organizationId: 1, ...newestFirst }),
    db.collection(COLLECTIONS.sandboxCardLedger).createIndex({ organizationId: 1, ...newestFirst }),
  ]);
}
