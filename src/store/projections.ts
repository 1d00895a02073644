import type DataLoader from "dataloader";
import type { AnyBulkWriteOperation, Collection, Db, Document } from "mongodb";
import { documentLoader } from "../lib/batch-loader.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import type { Payment, PaymentTexts } from "../domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../domain/agent/state.ts";
import type { DroppedAccount, DroppedWindows, RecordedCap } from "../domain/ledger/commands.ts";
import type { Calendar } from "../domain/ledger/calendar.ts";
import type { AccountSummary, Cap } from "../domain/ledger/state.ts";
import { noAmounts, plusPayment } from "../domain/ledger/restore.ts";
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
  countedIn,
  paymentIn,
  TEXT_FIELDS,
  transactionDocument,
} from "./payment-records.ts";
import { HeldPaymentWriter, recordsOf } from "./held-payments.ts";
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

export interface BookProofs {
  ofBooks(record: TransactionDocument): string;
  areBooksGenuine(record: TransactionDocument): boolean;
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

  /** `onPaymentWritten` is called at most once per revision, even if several processes try to write it. */
  constructor(
    db: Db,
    journal: EventJournal,
    proofs: BookProofs,
    onPaymentWritten: (payment: Payment) => void = () => undefined,
  ) {
    this.#journal = journal;
    this.#proofs = proofs;
    this.#onPaymentWritten = onPaymentWritten;
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

  async paymentOf(transactionId: string): Promise<RecordedOwn | null> {
    const found = await this.#transactionsById.load(transactionId);
    if (found === null) return null;
    const { approval, transaction } = await recordsOf(this.#collections, found);
    const { agentId, agentName: name, ledgerState, organizationId, projectId, teamId } = transaction;
    // The ledger adopts the books as they are.
    if (ledgerState.books !== null && !this.#proofs.areBooksGenuine(transaction))
      throw new Error(`the books in the record of ${transactionId} are not as the service wrote them`);
    const profile = { organizationId, projectId, teamId, agentId, name };
    return { profile, payment: paymentIn(transaction, approval) };
  }

  async closedAgent(
    agentId: string,
    bounds: DroppedWindows,
  ): Promise<Omit<DroppedAccount, "asOfRevision"> | null> {
    const { agents, transactions } = this.#collections;
    const agent = await agents.findOne({ _id: agentId });
    if (agent === null) return null;
    let amounts = noAmounts(bounds);
    const counted = transactions.find<CountedRecord>({ agentId }, { projection: COUNTED_FIELDS });
    for await (const record of counted) amounts = plusPayment(amounts, countedIn(record), bounds);
    const { accountRevision: revision, name, policy, policyVersion, teamId } = agent;
    return { teamId, name, policy, policyVersion, revision, ...amounts };
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
    await Promise.all([
      this.#agentWrites.write({ updateOne: { filter, update: [{ $set: accountFields(summary) }] } }),
      this.#journal.publishLifecycle(agentId, events),
    ]);
  }

  async writeCaps(projectId: string, caps: readonly RecordedCap[]): Promise<void> {
    const ofTeams = caps.flatMap(({ cap, teamId }) => (teamId === null ? [] : [capWrite(teamId, cap)]));
    const ofProject = caps.flatMap(({ calendar, cap, teamId }) =>
      teamId === null
        ? [capWrite(projectId, cap), ...(calendar === undefined ? [] : [calendarWrite(projectId, calendar)])]
        : [],
    );
    await Promise.all([
      ofTeams.length > 0 && this.#teams.bulkWrite(ofTeams, { ordered: false }),
      ofProject.length > 0 && this.#projects.bulkWrite(ofProject, { ordered: false }),
    ]);
  }
}

/** Updates a project's calendar if the recorded one is older. Written together with the project's cap. */
const calendarWrite = (_id: string, calendar: Calendar): AnyBulkWriteOperation<ContainerDocument> => ({
  updateOne: {
    filter: {
      _id,
      $or: [{ calendar: { $exists: false } }, { "calendar.version": { $lt: calendar.version } }],
    },
    update: { $set: { calendar } },
  },
});

const capWrite = (_id: string, cap: Cap): AnyBulkWriteOperation<ContainerDocument> => ({
  updateOne: {
    filter: { _id, $or: [{ cap: { $exists: false } }, { "cap.version": { $lt: cap.version } }] },
    update: { $set: { cap } },
  },
});

/**
 * Writes an agent's record as its actor and its ledger have it, also over one of the same revisions, never over a later
 * one. Returns whether both parts were written.
 */
export async function overwriteAgent(
  agents: Collection<AgentDocument>,
  agent: AgentSummary | null,
  account: AccountSummary | null,
): Promise<boolean> {
  const written = await Promise.all([
    agent === null ||
      agents.updateOne({ _id: agent.agentId, revision: { $lte: agent.revision } }, [
        { $set: { ...agentFields(agent), ...literal(firstUseOf(agent)) } },
      ]),
    account === null ||
      agents.updateOne({ _id: account.agentId, accountRevision: { $lte: account.revision } }, [
        { $set: accountFields(account) },
      ]),
  ]);
  return written.every((each) => each === true || each.matchedCount > 0);
}

/** Likewise for the cap of a project or of one of its teams, by the cap's version. */
export async function overwriteCap(
  db: Db,
  projectId: string,
  { cap, teamId }: RecordedCap,
): Promise<boolean> {
  const name = teamId === null ? COLLECTIONS.projects : COLLECTIONS.teams;
  const written = await db.collection<ContainerDocument>(name).updateOne(
    {
      _id: teamId ?? projectId,
      $or: [{ cap: { $exists: false } }, { "cap.version": { $lte: cap.version } }],
    },
    { $set: { cap } },
  );
  return written.matchedCount > 0;
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

/** Returns a payment's record with the proof of its books. */
function provenRecord(
  proofs: Pick<BookProofs, "ofBooks">,
  profile: AgentProfile,
  payment: Payment,
): TransactionDocument {
  const record = transactionDocument(profile, payment);
  if (payment.books === null) return record;
  return { ...record, ledgerState: { ...record.ledgerState, booksProof: proofs.ofBooks(record) } };
}

/** Returns an approval's record, with the current time as `closedAt` if its payment has ended. */
function approvalRecord(profile: AgentProfile, payment: Payment): ApprovalDocument | null {
  const approval = approvalDocument(profile, payment);
  return approval === null || payment.phase !== "done" ? approval : { ...approval, closedAt: new Date() };
}

const literal = (fields: object): Document =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { $literal: value }] as const));

/** Keeps a newer `updatedAt`: people change parts of the record that no actor knows. */
const notBefore = (updatedAt: number): Document => ({
  $max: ["$updatedAt", { $literal: new Date(updatedAt) }],
});

/**
 * Returns a pipeline's `$set`, since the key is chosen from the record's candidates; all other values are literals.
 * Only these fields are set, whatever else a summary contains: summaries come through Temporal, while an agent's
 * organization, place, wallet and key hashes are written once, by the server, at its creation.
 */
function agentFields(summary: AgentSummary): Document {
  const { archivedAt, keyId, name, revision, updatedAt, walletDetached } = summary;
  const { authenticatedAt } = firstUseOf(summary);
  return {
    ...literal({ name, walletDetached, revision, archivedAt: dateOrNull(archivedAt) }),
    // Keeps a first use that is recorded: a first use raises no revision, so this summary may predate it.
    authenticatedAt: { $ifNull: ["$authenticatedAt", { $literal: authenticatedAt }] },
    ...(archivedAt === null ? {} : { lifecycle: { $literal: "archived" } }),
    ...keyFields(keyId),
    updatedAt: notBefore(updatedAt),
  };
}

/** Returns the `$set` of the fields that the ledger decides. An archived agent stays archived. */
function accountFields(summary: AccountSummary): Document {
  const { policy, policyVersion, reservedCents, revision, revokedKeyId, spentCents, status, updatedAt } =
    summary;
  const isOpen = status !== "closed";
  return {
    ...literal({ policy, policyVersion, spentCents, reservedCents, accountRevision: revision }),
    ...(isOpen
      ? { lifecycle: { $cond: [{ $eq: ["$lifecycle", "archived"] }, "archived", { $literal: status }] } }
      : {}),
    ...(revokedKeyId === null ? {} : withoutKey(revokedKeyId)),
    updatedAt: notBefore(updatedAt),
  };
}

/** Removes a key, also from the candidates, in case the record does not show yet that the actor chose it. */
const withoutKey = (keyId: string): Document => ({
  key: { $cond: [{ $eq: ["$key.id", { $literal: keyId }] }, null, "$key"] },
  candidateKeys: otherCandidates(keyId),
});

const candidates = { $ifNull: ["$candidateKeys", []] };

const candidatesWith = (cond: Document): Document => ({ $filter: { input: candidates, cond } });

const otherCandidates = (keyId: string | null): Document => candidatesWith({ $ne: ["$$this.id", keyId] });

/** Returns the key that the actor names: the record's own, or the candidate with its id. */
function keyFields(keyId: string | null): Document {
  if (keyId === null) return { key: { $literal: null }, candidateKeys: candidates };
  const chosen = { $ifNull: [{ $first: candidatesWith({ $eq: ["$$this.id", keyId] }) }, null] };
  return {
    key: { $cond: [{ $eq: ["$key.id", keyId] }, "$key", chosen] },
    candidateKeys: otherCandidates(keyId),
  };
}

const firstUseOf = ({ authenticatedAt }: AgentSummary) => ({ authenticatedAt: dateOrNull(authenticatedAt) });

const dateOrNull = (at: number | null): Date | null => (at === null ? null : new Date(at));

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
