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
import type { AgentLifecycle } from "../domain/agent/state.ts";
import type { Calendar, Period } from "../domain/ledger/calendar.ts";
import type { Cap } from "../domain/ledger/state.ts";
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

/** The records in MongoDB that answer questions. What decides about money is in the actors. */

export interface TransactionDocument extends Document {
  _id: string;
  organizationId: string;
  projectId: string;
  teamId: string;
  agentId: string;
  agentName: string;
  /** Unique with `agentId`: an idempotency key makes one transaction. */
  keyHash: string;
  payloadHash: string;
  sequence: number;
  createdAt: Date;
  recipient: string;
  /** The URL that was paid for, its host and the shop's protocol and receipt; only of purchases. */
  resource?: string;
  host?: string;
  protocol?: Protocol;
  receipt?: string;
  /** Thousandths of a cent that it counts with; only of purchases, whose prices may be below a cent. */
  amountMc?: number;
  /** Form by which rules find it (`comparedName`); `recipient` is as it was sent. */
  comparedRecipient: string;
  /** Words that a search finds it by (`searchWords`). */
  words: string[];
  merchantCategory: string | null;
  /** Amount that it counts with: captured, and until then requested. */
  amountCents: number;
  /** Missing if it was charged in full (src/domain/ledger/recorded-amounts.ts). */
  amounts?: Amounts;
  stage: Stage | null;
  /** Limits that its network has exceeded; null: none. */
  breach: ShownBreach[] | null;
  /**
   * Amounts that sums by day add to `amountCents` at `createdAt`; missing if all was booked at once
   * (src/store/moved-amounts.ts).
   */
  moved?: MovedAmount[];
  currency: string;
  rail: Rail;
  status: TransactionStatus;
  purpose: string;
  /** Types of rules in the shadow that would have flagged it; missing: none. */
  wouldHaveFlagged?: string[];
  denialReason: string | null;
  denialCode: DenialCode | null;
  denialDetails: { limit: number; remaining: number; resetsAt: Date | null; period?: Period } | null;
  /** Time of its denial, failure, expiry or reversal. */
  deniedAt: Date | null;
  /** Feedback of the person who denied it. */
  feedback: string | null;
  onChainTxHash: string | null;
  chainCaip2: string | null;
  approvalId: string | null;
  revision: number;
  ledgerState: LedgerState;
  /** Time at which this revision was written; missing on records that were written by a repair. */
  recordedAt?: Date;
}

/** A change of a payment's sum at a later time; negative: it has fallen. */
export interface MovedAmount {
  at: Date;
  cents: number;
}

/** The part of a payment that only its ledger needs. A lost ledger is rebuilt from it; it is never shown. */
export interface LedgerState {
  phase: PaymentPhase;
  day: string;
  /** Instant at which it counts in the windows of spend limits; missing where that is `createdAt`. */
  windowAt?: Date;
  policyVersion: number;
  /** Thousandths of a cent that were requested. */
  amountMc: number;
  /** Missing where the payment has none. */
  card?: PaymentCard;
  books: StoredBooks | null;
  /** MAC over the books at this revision; null where there are none. */
  booksProof: string | null;
  /** The id that its approval has, or would have. */
  approvalId: string;
  fingerprint: string;
  proof: string;
  rulesVersions: RulesVersions | null;
}

/** An approval as an event has it. */
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
  /** The URL that is paid for; only of purchases. */
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
  /** Time at which the end of its payment was written down. */
  closedAt?: Date;
  /** Part that only the ledger needs, as a transaction's. */
  ledgerState: {
    proof: string | null;
    policyVersion: number | null;
    /** Only of purchases. */
    protocol?: Protocol;
  };
}

export interface AgentKeyRecord {
  id: string;
  /** HMAC of the key's value with the server-held pepper; the value itself is kept nowhere. A connection's is of its id. */
  hash: string;
  /** MAC that this hash is the agent's key's (`AgentProofs`). */
  proof: string;
  last4: string;
  /** A client that is connected by OAuth, in place of a value that somebody holds; left out for a key. */
  connection?: { clientName: string; /** Null: all that the agent may use. */ tools: string[] | null };
  createdAt: Date;
  lastUsedAt: Date | null;
}

/** An agent's wallet: everything that its address follows from, so that it can be deployed at its first use. */
export interface WalletRecord {
  /** Address with its EIP-55 checksum, as the others. */
  address: string;
  /** CAIP-2, `eip155:<chain id>`. */
  chainCaip2: string;
  /** The organization's own key. */
  owner: string;
  /** The service's key when the agent was created. */
  spender: string;
  factory: string;
}

export interface AgentDocument extends Document, Partial<AgentLabels> {
  _id: string;
  organizationId: string;
  projectId: string;
  teamId: string;
  name: string;
  /** Tools the key may call; null: all. */
  scopes: string[] | null;
  lifecycle: AgentLifecycle;
  policy: BudgetPolicy;
  policyVersion: number;
  spentCents: number;
  reservedCents: number;
  /** Null where no wallet rail was set up, or the organization had named no owner, when the agent was created. */
  wallet: WalletRecord | null;
  key: AgentKeyRecord | null;
  /** Keys that are being minted: the actor names the one that becomes `key`, by its id. */
  candidateKeys?: AgentKeyRecord[];
  /**
   * End of the time in which the replay of a machine's create delivers the first key again; null: a person created
   * the agent.
   */
  keyDeliverableUntil?: Date | null;
  /** First use of a key of the agent; null or missing: never, as far as is known here. */
  authenticatedAt?: Date | null;
  /** Whether the service has given up its right to spend from the archived agent's wallet. */
  walletDetached: boolean;
  createdBy: { type: "user" | "organization_key"; id: string };
  /** The lineage of the organization's key that created it, which survives rotation; null where a person did. */
  createdByLineage: string | null;
  createdAt: Date;
  /** MAC over what of the record never changes (`AgentProofs`). */
  proof: string;
  updatedAt: Date;
  archivedAt: Date | null;
  /** The revision of the agent's actor that name, keys and end were written from. */
  revision: number;
  /** The revision of its account in the ledger that policy, totals and whether it is paused were written from. */
  accountRevision: number;
}

/**
 * End of an agent's create, and the first key's sealed form while it may be delivered again. Its id is the agent's:
 * written with the agent's record in one transaction, or in its place when the create is given up, so never both.
 */
export interface KeyDeliveryDocument extends Document {
  _id: string;
  /** `open` until the window is over, then `closed`; `discarded`: the create was never committed, and can't be any more. */
  state: "open" | "closed" | "discarded";
  /** Null where nothing is to be delivered again. */
  sealed: string | null;
  at: Date;
  /** Missing while it is open. */
  endedAt?: Date;
}

/** Agent as an event has it: what every reader of the agent may see. */
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

/** The fields of a transaction that are shown; the projection by which only they are read. */
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

/** Transaction as an event has it and lists show it: what every reader of it may see. */
export type TransactionSnapshot = Pick<TransactionDocument, keyof typeof SHOWN_TRANSACTION_FIELDS>;

/** Event, once for everything that has happened. Deliveries are made from it. */
export interface EventDocument extends Document {
  _id: string;
  type: EventType;
  organizationId: string;
  /** Null, as the next three, for what concerns the organization alone. */
  projectId: string | null;
  teamId: string | null;
  agentId: string | null;
  agentName: string | null;
  createdAt: Date;
  /** Records as they were when it happened, under their nouns; nothing secret, nor a hash of it. */
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
  /** Set while its deliveries are still to be created. */
  isPending?: true;
  /**
   * Time at which its deliveries were created; missing on what concerns the organization alone, which is kept for
   * good.
   */
  dispatchedAt?: Date;
  /** Trace in which it was published, where there was one. */
  traceparent?: string;
  /** MAC over what it says (`AccessProofs`). */
  proof: string;
}

/** The approval rules of a container: replaced whole. */
export interface StoredRules {
  readonly rules: readonly ApprovalRule[];
  readonly version: number;
  /** SHA-256 of the rules, which are the same wherever it is. */
  readonly contentHash: string;
  /** MAC over container, version and hash (`AccessProofs`). */
  readonly proof: string;
}

/** Restrictions of a project, a team or an agent: replaced whole. */
export interface StoredRestrictions extends Pick<StoredRules, "version" | "contentHash" | "proof"> {
  readonly lists: Restrictions;
}

/** A level with rules or restrictions. Of agents in a collection of their own: an agent's record is read for many things. */
export interface RuledDocument extends Document {
  _id: string;
  organizationId: string;
  /** Missing until some are set; that is version 1. */
  approvalRules?: StoredRules;
  restrictions?: StoredRestrictions;
}

type RulesVersion = { readonly version: number } | undefined;

/** The version that ledgers know: raised by every replacement of rules or restrictions. 0: none were ever set. */
export const rulesRevisionOf = (level: {
  readonly approvalRules?: RulesVersion;
  readonly restrictions?: RulesVersion;
}): number => (level.approvalRules?.version ?? 0) + (level.restrictions?.version ?? 0);

export interface ContainerDocument extends RuledDocument {
  name: string;
  description: string | null;
  color: string | null;
  /** The keyed hash that names the tile's image, which lies apart (src/containers/logos.ts); null where there is none. */
  logoHash: string | null;
  createdAt: Date;
  archivedAt: Date | null;
  /** State that lists are narrowed by: `archived` once `archivedAt` is there, written with it. */
  state: "active" | "archived";
  /** Cap as the ledger has decided it; missing until one is set, which is version 1 without a cap. */
  cap?: Cap;
  /** Calendar of a project, as the ledger has decided it; missing until one is set. */
  calendar?: Calendar;
  /** MAC over its place (`AccessProofs`). */
  proof: string;
  /** Counts what was put into it, so that a create and an archive write to the same record. Of teams: their agents, archived ones too. */
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
