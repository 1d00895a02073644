import type DataLoader from "dataloader";
import type { AnyBulkWriteOperation, Collection, Db } from "mongodb";
import type { AgentPlaces } from "../agents/agent-places.ts";
import type { BookedTotals } from "../audit/booked-totals.ts";
import { documentLoader } from "../lib/batch-loader.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import type { Payment, PaymentTexts } from "../domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../domain/agent/state.ts";
import type { DroppedAccount, RecordedCap } from "../domain/ledger/commands.ts";
import type { AccountSummary } from "../domain/ledger/state.ts";
import { dayWith } from "../domain/ledger/restore.ts";
import { emptyUsage } from "../domain/ledger/usage.ts";
import { type BulkOutcome, BulkWriter } from "./bulk-writer.ts";
import { type Collections, collectionsOf } from "./collections.ts";
import type { AgentDocument, ApprovalDocument, ContainerDocument, TransactionDocument } from "./documents.ts";
import { COLLECTIONS } from "./documents.ts";
import { JOURNAL_INDEXES, type EventJournal } from "./journal.ts";
import { LIST_INDEXES } from "./newest-first.ts";
import type { Projections, RecordedOwn, UnpaidEnd } from "../payments/ports.ts";
import {
  approvalDocument,
  COUNTED_FIELDS,
  type CountedRecord,
  moneyIn,
  paymentIn,
  TEXT_FIELDS,
  transactionDocument,
} from "./payment-records.ts";
import { recordedBooks } from "./stored-books.ts";
import { HeldPaymentWriter, recordsOf } from "./held-payments.ts";
import { accountFields, agentFields, calendarWrite, capWrite, type LevelProofs } from "./level-records.ts";
import type { Indexes } from "./indexes.ts";

/**
 * Another transaction has the payment's idempotency key already. The actor should never have accepted the payment, so
 * it is not confirmed, and the sweep that keeps failing shows it to operators.
 */
export class DuplicateIdempotencyKey extends Error {
  override readonly name = "DuplicateIdempotencyKey";
}

/** Final statuses of payments that no rail has made or ever will. */
const ENDED_UNPAID = ["denied", "expired", "failed"] as const;

const NOTHING_BOOKED = { capturedMc: 0, creditedMc: 0, recalledMc: 0, disputedMc: 0 };

export interface BookProofs {
  ofBooks(record: TransactionDocument): string;
  areBooksGenuine(record: TransactionDocument): boolean;
  isOrderGenuine(record: TransactionDocument): boolean;
}

export interface ProjectionsDependencies {
  readonly accessProofs: LevelProofs;
  readonly booked: Pick<BookedTotals, "exceed">;
  readonly db: Db;
  readonly journal: EventJournal;
  /** Called at most once per revision, even if several processes try to write it. */
  readonly onPaymentWritten?: (payment: Payment) => void;
  readonly places: Pick<AgentPlaces, "of">;
  readonly proofs: BookProofs;
}

/** Projections in MongoDB, acknowledged by the journals of a majority. */
export class MongoProjections implements Projections {
  readonly #transactions: Collection<TransactionDocument>;
  readonly #transactionsById: DataLoader<string, TransactionDocument | null>;
  readonly #transactionWrites: BulkWriter<TransactionDocument>;
  readonly #heldWrites: HeldPaymentWriter;
  readonly #agentWrites: BulkWriter<AgentDocument>;
  readonly #projects: Collection<ContainerDocument>;
  readonly #teams: Collection<ContainerDocument>;
  readonly #journal: EventJournal;
  readonly #onPaymentWritten: (payment: Payment) => void;
  readonly #collections: Pick<Collections, "agents" | "approvals" | "transactions">;
  readonly #proofs: BookProofs;
  readonly #accessProofs: LevelProofs;
  readonly #booked: Pick<BookedTotals, "exceed">;
  readonly #places: Pick<AgentPlaces, "of">;

  constructor({
    accessProofs,
    booked,
    db,
    journal,
    onPaymentWritten,
    places,
    proofs,
  }: ProjectionsDependencies) {
    this.#accessProofs = accessProofs;
    this.#journal = journal;
    this.#proofs = proofs;
    this.#places = places;
    this.#booked = booked;
    this.#onPaymentWritten = onPaymentWritten ?? (() => undefined);
    this.#transactions = db.collection<TransactionDocument>(COLLECTIONS.transactions);
    this.#transactionWrites = new BulkWriter(this.#transactions);
    this.#heldWrites = new HeldPaymentWriter(db);
    this.#agentWrites = new BulkWriter(db.collection<AgentDocument>(COLLECTIONS.agents));
    this.#projects = db.collection<ContainerDocument>(COLLECTIONS.projects);
    this.#teams = db.collection<ContainerDocument>(COLLECTIONS.teams);
    this.#collections = collectionsOf(db);
    const { transactions } = this.#collections;
    this.#transactionsById = documentLoader(
      (_id) => transactions.findOne({ _id }),
      (ids) => transactions.find({ _id: { $in: [...ids] } }).toArray(),
    );
  }

  async paymentOf(
    transactionId: string,
    use: "to read" | "to adopt" = "to read",
  ): Promise<RecordedOwn | null> {
    const found = await this.#transactionsById.load(transactionId);
    if (found === null) return null;
    const { approval, transaction } = await recordsOf(this.#collections, found);
    const { agentId, agentName: name } = transaction;
    // The ledger adopts the payment as it is recorded.
    if (!this.#proofs.isOrderGenuine(transaction) || !this.#proofs.areBooksGenuine(transaction))
      throw new Error(`the record of ${transactionId} is not as the service wrote it`);
    const profile = { ...(await this.#places.of(agentId)), agentId, name };
    const payment = paymentIn(transaction, approval);
    const recorded = payment.books?.bookings.at(-1) ?? NOTHING_BOOKED;
    if (use === "to adopt" && (await this.#booked.exceed(profile.organizationId, transactionId, recorded)))
      throw new Error(`the record of ${transactionId} is older than its entries in the audit log`);
    return { profile, payment };
  }

  async closedAgent(agentId: string): Promise<Omit<DroppedAccount, "asOfRevision"> | null> {
    const { agents, transactions } = this.#collections;
    const agent = await agents.findOne({ _id: agentId });
    if (agent === null) return null;
    let [spentMc, closed] = [0, 0];
    let { day } = emptyUsage();
    const counted = transactions.find<CountedRecord>({ agentId }, { projection: COUNTED_FIELDS });
    for await (const record of counted) {
      spentMc += moneyIn(record).spentMc;
      closed += 1;
      const { ledgerState, status } = record;
      day = dayWith(day, {
        status,
        books: recordedBooks(ledgerState),
        request: ledgerState,
        day: ledgerState.day,
      });
    }
    const { accountRevision: revision, name, policy, policyVersion, teamId } = agent;
    return { teamId, name, policy, policyVersion, spentMc, day, closed, revision };
  }

  async writePayment(profile: AgentProfile, payment: Payment): Promise<void> {
    const transaction = { ...provenRecord(this.#proofs, profile, payment), recordedAt: new Date() };
    const approval = approvalRecord(profile, payment);
    const isWritten = await this.#writeNewest(transaction, () =>
      approval === null
        ? this.#transactionWrites.write(replaceOlder(transaction))
        : this.#heldWrites.write({ transaction, approval }),
    );
    if (isWritten) this.#onPaymentWritten(payment);
  }

  /**
   * Writes a record and returns whether it was written. A duplicate means that the record exists at the same or a later
   * revision, that a concurrent write was inserting it, or that its unique key belongs to another record.
   */
  async #writeNewest(record: TransactionDocument, write: () => Promise<BulkOutcome>): Promise<boolean> {
    const { _id, revision } = record;
    for (let round = 0; round < RACING_WRITES_MAX; round += 1) {
      if ((await write()) === "written") return true;
      const own = await this.#transactions.findOne({ _id }, { projection: { revision: 1 } });
      if (own === null) throw new DuplicateIdempotencyKey(`record ${_id}`);
      if (own.revision >= revision) return false;
    }
    throw new Error(`record ${_id} kept losing to concurrent writes`);
  }

  async endOf(transactionId: string): Promise<UnpaidEnd | null> {
    const ended = { _id: transactionId, status: { $in: [...ENDED_UNPAID] } };
    const found = await this.#transactions.findOne(ended, { projection: { deniedAt: 1, sequence: 1 } });
    return found === null ? null : { deniedAt: found.deniedAt?.getTime() ?? null, sequence: found.sequence };
  }

  textsOf(transactionId: string): Promise<PaymentTexts | null> {
    const projection = { _id: 0, ...TEXT_FIELDS } as const;
    return this.#transactions.findOne<PaymentTexts>({ _id: transactionId }, { projection });
  }

  get waiting(): number {
    return this.#transactionWrites.waiting + this.#heldWrites.waiting + this.#agentWrites.waiting;
  }

  async writeAgent(summary: AgentSummary): Promise<void> {
    const { agentId, events, revision } = summary;
    const filter = { _id: agentId, revision: { $lt: revision } };
    await Promise.all([
      this.#agentWrites.write({ updateOne: { filter, update: [{ $set: agentFields(summary) }] } }),
      this.#journal.publishLifecycle(agentId, events),
    ]);
  }

  async writeAccount(summary: AccountSummary): Promise<void> {
    const { agentId, events, revision } = summary;
    const filter = { _id: agentId, accountRevision: { $lt: revision } };
    const update = [{ $set: accountFields(this.#accessProofs, summary) }];
    await Promise.all([
      this.#agentWrites.write({ updateOne: { filter, update } }),
      this.#journal.publishLifecycle(agentId, events),
    ]);
  }

  async writeCaps(projectId: string, caps: readonly RecordedCap[]): Promise<void> {
    const proofs = this.#accessProofs;
    const ofTeams = caps.flatMap(({ cap, teamId }) =>
      teamId === null ? [] : [capWrite(proofs, "team", teamId, cap)],
    );
    const ofProject = caps.flatMap(({ calendar, cap, teamId }) => {
      if (teamId !== null) return [];
      const ofCalendar = calendar === undefined ? [] : [calendarWrite(proofs, projectId, calendar)];
      return [capWrite(proofs, "project", projectId, cap), ...ofCalendar];
    });
    await Promise.all([
      ofTeams.length > 0 && this.#teams.bulkWrite(ofTeams, { ordered: false }),
      ofProject.length > 0 && this.#projects.bulkWrite(ofProject, { ordered: false }),
    ]);
  }
}

/** Likewise for the records of a payment. */
export async function overwritePayment(
  db: Db,
  proofs: Pick<BookProofs, "ofBooks">,
  profile: AgentProfile,
  payment: Payment,
): Promise<boolean> {
  const transaction = provenRecord(proofs, profile, payment);
  const approval = approvalRecord(profile, payment);
  if (approval !== null) {
    const heldWrites = new HeldPaymentWriter(db);
    return (await heldWrites.writeAlone({ transaction, approval }, payment.revision + 1)) === "written";
  }
  const { _id, ...replacement } = transaction;
  const filter = { _id, revision: { $lte: payment.revision } };
  const transactions = db.collection<TransactionDocument>(COLLECTIONS.transactions);
  try {
    await transactions.replaceOne(filter, replacement, { upsert: true });
    return true;
  } catch (error) {
    // A later revision exists, or another record has the idempotency key.
    if (isDuplicateKey(error)) return false;
    throw error;
  }
}

/** Returns a payment's record with the proof of its state and books. */
function provenRecord(
  proofs: Pick<BookProofs, "ofBooks">,
  profile: AgentProfile,
  payment: Payment,
): TransactionDocument {
  const record = transactionDocument(profile, payment);
  return { ...record, ledgerState: { ...record.ledgerState, booksProof: proofs.ofBooks(record) } };
}

/** Returns an approval's record, with the current time as `closedAt` if its payment has ended. */
function approvalRecord(profile: AgentProfile, payment: Payment): ApprovalDocument | null {
  const approval = approvalDocument(profile, payment);
  return approval === null || payment.phase !== "done" ? approval : { ...approval, closedAt: new Date() };
}

/** Maximum rounds in which racing writes of one record are repeated; one writer wins each round. */
const RACING_WRITES_MAX = 8;

/** Returns a write that inserts the record or replaces an older revision. */
function replaceOlder(record: TransactionDocument): AnyBulkWriteOperation<TransactionDocument> {
  if (record.revision === 1) return { insertOne: { document: record } };
  const { _id, ...replacement } = record;
  const filter = { _id, revision: { $lt: record.revision } };
  const { approvalId, ledgerState } = record;
  // A late event from the network may concern a payment whose approval's record is gone; its fields are kept.
  const isLate = ledgerState.books !== null && !("inFullAt" in ledgerState.books);
  if (approvalId !== null || !isLate) return { replaceOne: { filter, replacement, upsert: true } };
  const kept = {
    approvalId: { $ifNull: ["$approvalId", null] },
    feedback: { $ifNull: ["$feedback", null] },
  };
  const update = [{ $replaceWith: { $mergeObjects: [{ $literal: record }, kept] } }];
  return { updateOne: { filter, update, upsert: true } };
}

/** Index for an agent's payments by recipient and amount. */
export const RECIPIENT_INDEX = "agent_recipient_amount";
/** Index for an agent's purchases by the shop's host. */
export const HOST_INDEX = "agent_host";

/** Indexes for look-ups by rules and metrics, and the unique index behind idempotency keys. */
const LOOKUP_INDEXES: Indexes = {
  [COLLECTIONS.transactions]: [
    { key: { agentId: 1, keyHash: 1 }, unique: true, reader: "replays of an idempotency key" },
    {
      // Includes status and amount, so that payments that don't match are skipped without being read.
      key: { agentId: 1, rail: 1, comparedRecipient: 1, status: 1, "ledgerState.amountMc": 1, createdAt: -1 },
      name: RECIPIENT_INDEX,
      reader: "rules on new recipients and duplicates; possible duplicates",
    },
    {
      key: { agentId: 1, host: 1, status: 1 },
      partialFilterExpression: { host: { $gt: "" } },
      name: HOST_INDEX,
      reader: "rules on new recipients that are shops",
    },
    {
      key: { agentId: 1, deniedAt: -1, _id: -1 },
      reader: "the newest denials, which an agent asks for",
      partialFilterExpression: { deniedAt: { $type: "date" } },
    },
    // Status first, since the planner looks for it.
    {
      key: { status: 1, rail: 1 },
      reader: "the gauge of payments without an end, over all organizations",
      partialFilterExpression: { status: "pending" },
      name: "open_by_rail",
    },
  ],
  [COLLECTIONS.sandboxCardLedger]: [
    {
      key: { transactionId: 1, changedAt: 1 },
      partialFilterExpression: { changedAt: { $type: "date" } },
      reader: "what the sandbox's network has done with one payment since it was sent",
    },
    {
      key: { changedAt: 1 },
      partialFilterExpression: { changedAt: { $type: "date" } },
      reader: "the same of all payments, since some time",
    },
  ],
  [COLLECTIONS.approvals]: [
    {
      key: { state: 1, createdAt: 1, rail: 1 },
      reader: "the gauge of payments on hold and of their age, over all organizations",
      partialFilterExpression: { state: "pending" },
      name: "on_hold_since",
    },
  ],
  [COLLECTIONS.agents]: [
    {
      key: { "key.hash": 1 },
      unique: true,
      reader: "authentication of agents",
      partialFilterExpression: { "key.hash": { $gt: "" } },
    },
  ],
};

export const PROJECTION_INDEXES: readonly Indexes[] = [JOURNAL_INDEXES, LIST_INDEXES, LOOKUP_INDEXES];
