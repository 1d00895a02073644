import type { EventType } from "../domain/events.ts";
import type { Document } from "mongodb";
import type { ShownBreach, Stage } from "../domain/ledger/books.ts";
import type {
  ApprovalResolution,
  BudgetContext,
  PaymentPhase,
  PaymentCard,
  Protocol,
  Rail,
  Resolver,
  RulesVersions,
  TransactionStatus,
} from "../domain/ledger/payment.ts";
import type { Amounts } from "../domain/ledger/amounts.ts";
import type { BudgetPolicy, DenialCode } from "../domain/ledger/policy.ts";
import type { AgentLabels } from "../domain/agent/labels.ts";
import type { AgentLifecycle, AgentProfile } from "../domain/agent/state.ts";
import type { Calendar, Period } from "../domain/ledger/calendar.ts";
import type { AccountStatus, Cap } from "../domain/ledger/state.ts";
import type { Restrictions } from "../domain/rules/restrictions.ts";
import type { ApprovalRule } from "../domain/rules/rules.ts";
import type {
  AuthorizationRecord,
  BillingPaymentRecord,
  BudgetRecord,
  DepositRecord,
  FundingRecord,
} from "./event-records.ts";
import type { StoredBooks } from "./stored-books.ts";

/** A payment's record, for queries. Decisions about money rest on the actors' state. */

export interface TransactionDocument extends Document {
  _id: string;
  organizationId: string;
  projectId: string;
  teamId: string;
  agentId: string;
  agentName: string;
  /** Hash of the idempotency key; unique with `agentId`, so that a key makes one transaction. */
  keyHash: string;
  payloadHash: string;
  sequence: number;
  createdAt: Date;
  recipient: string;
  /** URL that was paid for, its host, and the shop's protocol and receipt; only of purchases. */
  resource?: string;
  host?: string;
  protocol?: Protocol;
  receipt?: string;
  /** Amount in thousandths of a cent; only of purchases, whose prices may be below a cent. */
  amountMc?: number;
  /** Form in which rules compare the recipient (`comparedName`); `recipient` is as it was sent. */
  comparedRecipient: string;
  /** Words by which a search finds the payment (`searchWords`). */
  words: string[];
  merchantCategory: string | null;
  /** Amount that counts: the captured one; until the capture, the requested one. */
  amountCents: number;
  /** Missing if the payment was charged in full (src/domain/ledger/recorded-amounts.ts). */
  amounts?: Amounts;
  stage: Stage | null;
  /** Limits that the payment's network has exceeded; null if none. */
  breach: ShownBreach[] | null;
  /** Amounts that sums by day add to `amountCents` at `createdAt`; missing if all was booked at once. */
  moved?: MovedAmount[];
  currency: string;
  rail: Rail;
  status: TransactionStatus;
  purpose: string;
  /** Types of shadow rules that would have flagged the payment; missing if none. */
  wouldHaveFlagged?: string[];
  denialReason: string | null;
  denialCode: DenialCode | null;
  denialDetails: { limit: number; remaining: number; resetsAt: Date | null; period?: Period } | null;
  /** Time of the denial, failure, expiry or reversal. */
  deniedAt: Date | null;
  feedback: string | null;
  onChainTxHash: string | null;
  chainCaip2: string | null;
  approvalId: string | null;
  revision: number;
  ledgerState: LedgerState;
  /** Time at which this revision was written; missing on records that a repair wrote. */
  recordedAt?: Date;
}

/** A later change of a payment's sum; negative for a decrease. */
export interface MovedAmount {
  at: Date;
  cents: number;
}

/** Part of a payment's record that only its ledger needs, to be rebuilt if it is lost. Never shown. */
export interface LedgerState {
  phase: PaymentPhase;
  day: string;
  /** Instant at which the payment counts in the windows of spend limits; missing if equal to `createdAt`. */
  windowAt?: Date;
  policyVersion: number;
  amountMc: number;
  card?: PaymentCard;
  books: StoredBooks | null;
  /** MAC over the payment's state and books at this revision. */
  booksProof: string;
  /** Id that the payment's approval has, or would have. */
  approvalId: string;
  fingerprint: string;
  proof: string;
  rulesVersions: RulesVersions | null;
}

/** Form of an approval in events. */
export interface ApprovalSnapshot extends Document {
  _id: string;
  transactionId: string;
  organizationId: string;
  projectId: string;
  teamId: string;
  agentId: string;
  agentName: string;
  amountCents: number;
  currency: string;
  rail: Rail;
  recipient: string;
  /** URL that is paid for; only of purchases. */
  resource?: string;
  /** Thousandths of a cent; only of purchases. */
  amountMc?: number;
  purpose: string;
  budgetContext: BudgetContext;
  flaggedByRuleTypes: string[];
  createdAt: Date;
  expiresAt: Date;
  state: "pending" | "completed";
  resolution: ApprovalResolution | null;
  resolvedAt: Date | null;
  resolvedBy: Resolver | null;
  feedback: string | null;
  revision: number;
}

export interface ApprovalDocument extends ApprovalSnapshot {
  /** Time at which the end of the approval's payment was recorded. */
  closedAt?: Date;
  /** Part that only the ledger needs, as in a transaction's record. */
  ledgerState: {
    proof: string | null;
    policyVersion: number | null;
    /** Only of purchases. */
    protocol?: Protocol;
  };
}

export interface AgentKeyRecord {
  id: string;
  /** HMAC of the key's value (a connection's: of its id) with the server-held pepper; the value is not stored. */
  hash: string;
  /** MAC that ties this hash to the agent's key (`AgentProofs`). */
  proof: string;
  last4: string;
  /** Client that is connected by OAuth instead of holding a key's value; missing for a key. */
  connection?: { clientName: string; /** Null for all that the agent may use. */ tools: string[] | null };
  createdAt: Date;
  lastUsedAt: Date | null;
}

/** An agent's wallet, with everything that determines its address, so that it can be deployed at its first use. */
export interface WalletRecord {
  /** Address with its EIP-55 checksum, as `owner`, `spender` and `factory`. */
  address: string;
  /** CAIP-2, `eip155:<chain id>`. */
  chainCaip2: string;
  /** Address of the organization's own key. */
  owner: string;
  /** Address of the service's key at the agent's creation. */
  spender: string;
  factory: string;
}

export interface AgentDocument extends Document, Partial<AgentLabels> {
  _id: string;
  organizationId: string;
  projectId: string;
  teamId: string;
  name: string;
  /** Tools that the key may call; null for all. */
  scopes: string[] | null;
  lifecycle: AgentLifecycle;
  policy: BudgetPolicy;
  policyVersion: number;
  spentCents: number;
  reservedCents: number;
  /** Null if the agent was created without a wallet rail, or before the organization named an owner. */
  wallet: WalletRecord | null;
  key: AgentKeyRecord | null;
  /** Keys that are being minted; the actor names the one that becomes `key`, by its id. */
  candidateKeys?: AgentKeyRecord[];
  /** End of the window in which a replay of a machine's create delivers the first key; null for a person's. */
  keyDeliverableUntil?: Date | null;
  /** First known use of a key of the agent; null or missing if there was none. */
  authenticatedAt?: Date | null;
  /** Whether the service has given up its right to spend from the archived agent's wallet. */
  walletDetached: boolean;
  createdBy: { type: "user" | "organization_key"; id: string };
  /** Lineage of the organization key that created the agent, which survives rotation; null if a person did. */
  createdByLineage: string | null;
  createdAt: Date;
  /** MAC over the record's immutable fields (`AgentProofs`). */
  proof: string;
  updatedAt: Date;
  archivedAt: Date | null;
  /** Revision of the agent's actor that name, keys and archival were written from. */
  revision: number;
  /** Revision of the agent's ledger account that policy, totals and paused state were written from. */
  accountRevision: number;
  /** Status of the account at that revision, which `lifecycle` shows unless the agent is archived. */
  accountStatus: AccountStatus;
  /** MAC over the account's policy and status at that revision (`AccessProofs`). */
  accountProof: string;
}

/** Returns the agent's profile, as actors and rails get it. */
export const profileOf = (agent: AgentDocument): AgentProfile => ({
  organizationId: agent.organizationId,
  projectId: agent.projectId,
  teamId: agent.teamId,
  agentId: agent._id,
  name: agent.name,
});

/**
 * Outcome of an agent's create, with the first key's sealed form while it may be delivered again. The id is the
 * agent's. Written either with the agent's record in one transaction, or in its place when the create is given up,
 * never both.
 */
export interface KeyDeliveryDocument extends Document {
  _id: string;
  /** `open` until the window ends, then `closed`. `discarded`: the create was never committed and can't be any more. */
  state: "open" | "closed" | "discarded";
  /** Sealed key; null if nothing is to be delivered again. */
  sealed: string | null;
  at: Date;
  /** Missing while the delivery is open. */
  endedAt?: Date;
}

/** Form of an agent in events: everything that each reader of the agent may see. */
export type AgentSnapshot = Pick<
  AgentDocument,
  | "_id"
  | "name"
  | keyof AgentLabels
  | "lifecycle"
  | "projectId"
  | "teamId"
  | "scopes"
  | "policy"
  | "policyVersion"
  | "spentCents"
  | "reservedCents"
  | "wallet"
  | "key"
  | "createdBy"
  | "createdAt"
  | "updatedAt"
  | "archivedAt"
>;

/** Projection to the fields of a transaction that are shown. */
export const SHOWN_TRANSACTION_FIELDS = {
  _id: 1,
  createdAt: 1,
  agentId: 1,
  agentName: 1,
  recipient: 1,
  resource: 1,
  protocol: 1,
  receipt: 1,
  amountMc: 1,
  amountCents: 1,
  amounts: 1,
  stage: 1,
  breach: 1,
  currency: 1,
  rail: 1,
  status: 1,
  purpose: 1,
  wouldHaveFlagged: 1,
  denialReason: 1,
  denialCode: 1,
  denialDetails: 1,
  onChainTxHash: 1,
  chainCaip2: 1,
} as const;

/** Form of a transaction in events and lists: everything that each of its readers may see. */
export type TransactionSnapshot = Pick<TransactionDocument, keyof typeof SHOWN_TRANSACTION_FIELDS>;

/** An event, written once; deliveries are made from it. */
export interface EventDocument extends Document {
  _id: string;
  type: EventType;
  organizationId: string;
  /** Null for events that concern the organization alone, as the next three fields. */
  projectId: string | null;
  teamId: string | null;
  agentId: string | null;
  agentName: string | null;
  createdAt: Date;
  /** Records as of the event, keyed by their nouns, without secrets or hashes of secrets. */
  data: {
    agent?: AgentSnapshot;
    transaction?: TransactionSnapshot;
    authorization?: AuthorizationRecord;
    approval?: ApprovalSnapshot;
    deposit?: DepositRecord;
    funding?: FundingRecord;
    payment?: BillingPaymentRecord;
    budget?: BudgetRecord;
  };
  /** Set until the event's deliveries are created. */
  isPending?: true;
  /** Time at which the deliveries were created; missing on events of the organization alone, which are kept. */
  dispatchedAt?: Date;
  /** Trace in which the event was published, if any. */
  traceparent?: string;
  /** MAC over the event's content (`AccessProofs`). */
  proof: string;
}

/** Approval rules of a container; replaced as a whole. */
export interface StoredRules {
  readonly rules: readonly ApprovalRule[];
  readonly version: number;
  /** SHA-256 of the rules, independent of their container. */
  readonly contentHash: string;
  /** MAC over container, version and hash (`AccessProofs`). */
  readonly proof: string;
}

/** Restrictions of a project, a team or an agent; replaced as a whole. */
export interface StoredRestrictions extends Pick<StoredRules, "version" | "contentHash" | "proof"> {
  readonly lists: Restrictions;
}

/** A level with rules or restrictions. Agents' are separate, since agents' records are read for much else. */
export interface RuledDocument extends Document {
  _id: string;
  organizationId: string;
  /** Missing until rules are first set, as version 1. */
  approvalRules?: StoredRules;
  restrictions?: StoredRestrictions;
}

type RulesVersion = { readonly version: number } | undefined;

/**
 * Returns the version that ledgers know, raised by every replacement of rules or restrictions; 0 if none were ever set.
 */
export const rulesRevisionOf = (level: {
  readonly approvalRules?: RulesVersion;
  readonly restrictions?: RulesVersion;
}): number => (level.approvalRules?.version ?? 0) + (level.restrictions?.version ?? 0);

export interface ContainerDocument extends RuledDocument {
  name: string;
  description: string | null;
  color: string | null;
  /** Keyed hash that names the tile's image (src/containers/logos.ts); null if there is none. */
  logoHash: string | null;
  createdAt: Date;
  archivedAt: Date | null;
  /** State that lists filter by; `archived` is written together with `archivedAt`. */
  state: "active" | "archived";
  /** Cap as decided by the ledger; missing until one is set, which means version 1 without a cap. */
  cap?: Cap;
  /** A project's calendar as decided by the ledger; missing until one is set. */
  calendar?: Calendar;
  /** MAC over the container's place (`AccessProofs`). */
  proof: string;
  /** MAC over the cap, or over having none (`AccessProofs`). */
  capProof: string;
  /** Of a project: MAC over the calendar, or over having none (`AccessProofs`). */
  calendarProof?: string;
  /** Children ever created (of a team: agents), so that a create and an archival write to the same record. */
  childrenCreated?: number;
}
export type ProjectDocument = ContainerDocument;
export type TeamDocument = ContainerDocument & { projectId: string };

export const COLLECTIONS = {
  agents: "agents",
  agentRestrictions: "agent_restrictions",
  raiseRequests: "raise_requests",
  creates: "creates",
  keyDeliveries: "key_deliveries",
  events: "events",
  transactions: "transactions",
  approvals: "approvals",
  projects: "projects",
  teams: "teams",
  sandboxCardLedger: "sandbox_card_ledger",
  cardConnections: "card_connections",
  chainTransactions: "chain_transactions",
  walletLimits: "wallet_limits",
  chainCursors: "chain_cursors",
  ledgerRevisions: "ledger_revisions",
  purchases: "purchases",
  purchaseAnswers: "purchase_answers",
  pockets: "pockets",
  pocketAuthorizations: "pocket_authorizations",
  walletFundings: "wallet_fundings",
  walletTargets: "wallet_targets",
} as const;
