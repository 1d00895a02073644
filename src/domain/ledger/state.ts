import type { LifecycleEvent } from "../events.ts";
import type { StoredPayment } from "./payment.ts";
import { usedCents } from "../money.ts";
import type { AgentProfile } from "../agent/state.ts";
import type { BudgetPolicy } from "./policy.ts";
import { type Calendar, UTC_CALENDAR } from "./calendar.ts";
import { emptyUsage, type Usage } from "./usage.ts";
import { NO_WINDOWS, type SpendLimits, type Windows } from "./windows.ts";
import { type OnceCharged, onceCharged } from "./foreseen-charge.ts";
import type { Grant } from "./raises.ts";
import type { ReplyCache } from "./reply-cache.ts";
import { noClosedKeys, type ClosedKeys } from "./closed-keys.ts";

/**
 * Cap of a project or a team; null for none. The version is that of the whole budget: every replacement raises it, and
 * so does every change of a child (a team's cap, an agent's budget).
 */
export interface Cap extends SpendLimits {
  readonly capCents: number | null;
  readonly version: number;
}

export const NO_CAP: Cap = { capCents: null, version: 1 };

/** Spent and held amounts of the accounts under a cap, including closed accounts. */
export interface Totals {
  readonly spentMc: number;
  readonly reservedMc: number;
}

export const NO_TOTALS: Totals = { spentMc: 0, reservedMc: 0 };

/** The project or a team, in the ledger. */
export interface Level {
  readonly cap: Cap;
  readonly totals: Totals;
  readonly windows: Windows;
  /** Newest version of the rules and restrictions by which a payment was judged; 0 if none were ever set. */
  readonly rulesVersion: number;
  /** Newest version of the cap that the record is known to show. */
  readonly recordedCapVersion: number;
  /** Time of the oldest change of the cap or its version that the record may not show. */
  readonly capChangedAt: number;
}

export const NEW_LEVEL: Level = {
  cap: NO_CAP,
  totals: NO_TOTALS,
  windows: NO_WINDOWS,
  rulesVersion: 0,
  recordedCapVersion: NO_CAP.version,
  capChangedAt: 0,
};

/** Whether an account takes payments. A closed one stays until all its open payments have ended. */
export type AccountStatus = "active" | "paused" | "closed";

/** A payment with something left to execute, publish or await. Immutable; replaced as a whole. */
export interface OpenPayment {
  readonly payment: StoredPayment;
  /** Time of the last change, after which the sweep executes unconfirmed effects. */
  readonly changedAt: number;
  /** Newest revision whose effects are confirmed; 0 if none yet. */
  readonly confirmedRevision: number;
  /** Earlier due time, set when the event that the payment waited for has happened. */
  readonly dueAt?: number;
  /** Set if the payment must not be sent any more; it is released unless its rail has it. */
  readonly isWithdrawn?: true;
  /** Number of consecutive failed executions. */
  readonly failures?: number;
  /** Set if the payment was retried early, which happens once, because its rail answered other payments. */
  readonly isExpedited?: true;
}

/**
 * The money of one agent. Only a draft changes accounts (`draft.ts`). The ledger's accounts are replaced as a whole, so
 * that a command that fails half-way has changed nothing.
 */
export interface Account {
  readonly agentId: string;
  readonly teamId: string;
  name: string;
  status: AccountStatus;
  /** The one key that may pay; null for none. */
  keyId: string | null;
  /** Revision of the agent's actor that name, key and closing are from. */
  followedRevision: number;
  policy: BudgetPolicy;
  policyVersion: number;
  /** Newest version of the restrictions by which a payment was judged; 0 if none were ever set. */
  rulesVersion: number;
  usage: Usage;
  /** Number of payments decided so far. */
  sequence: number;
  open: Map<string, OpenPayment>;
  /** Number of payments closed so far, which are final in the records. */
  closed: number;
  /** Highest closing number of a payment whose key was evicted; 0 if none was. */
  evictedThrough: number;
  /** Raised by every change that the agent's record shows. Numbers permits and fences. */
  revision: number;
  /** Sequence of the payment for whose charge the next revision is reserved (`foreseen-charge.ts`); 0 for none. */
  foreseenSequence: number;
  confirmedRevision: number;
  updatedAt: number;
  /** Policy version that the agent's wallet mirrors, which gets its first at deployment. */
  mirroredPolicyVersion: number;
  /** Time of the newest pause or stop; null while the account is not paused. */
  pausedAt: number | null;
  /** Whether the agent's actor has this status; false from a change until told, as old messages may be late. */
  isStatusTold: boolean;
  /** Key that a stop has revoked, until the agent's actor is known to follow; null for none. */
  revokedKeyId: string | null;
  /** Newest granted raise, until it is known to be recorded. */
  grant: Grant | null;
  /** Events that are not known to be in the journal. */
  outbox: readonly LifecycleEvent[];
  /** Upper bound of the account's packed bytes, as of its last change (`weight.ts`). */
  weightBytes: number;
}

/** Bounds of a ledger. Commands that would exceed Temporal's own bounds are refused earlier. */
export interface LedgerBounds {
  /** Maximum live accounts. */
  readonly accounts: number;
  /** Maximum open payments (in flight or on hold) of one agent, and of the whole project. */
  readonly openOfAgent: number;
  readonly openOfProject: number;
  /**
   * Maximum idempotency keys of closed payments, over all agents; older ones are evicted, and checked in the records.
   */
  readonly closedKeys: number;
  /** Weight of all accounts below which another is opened. */
  readonly openedBelowBytes: number;
  /** Ledger weights below which a payment is accepted, and a person's resolution. */
  readonly paidBelowBytes: number;
  readonly resolvedBelowBytes: number;
  /** Weight of an account below which a further payment is accepted while others are open. */
  readonly paidBelowBytesOfAgent: number;
  /** Further payments need an agent's open share below 1 / `partsOfRest` of the project's remaining room. */
  readonly partsOfRest: number;
}

export const LEDGER_BOUNDS: LedgerBounds = {
  accounts: 10_000,
  openOfAgent: 200,
  openOfProject: 2_000,
  closedKeys: 5_000,
  // Leaves room for 2,000 teams, all keys and replies, and for open payments.
  openedBelowBytes: 1_330_000,
  // Each bound is above the one before, so that work in progress has room to finish.
  paidBelowBytes: 1_940_000,
  resolvedBelowBytes: 1_980_000,
  paidBelowBytesOfAgent: 120_000,
  partsOfRest: 4,
};

/** Bounds of a ledger that is never packed, so that its accounts are not weighed. */
export const NO_BOUNDS_OF_BYTES = {
  openedBelowBytes: Infinity,
  paidBelowBytes: Infinity,
  resolvedBelowBytes: Infinity,
  paidBelowBytesOfAgent: Infinity,
} as const satisfies Partial<LedgerBounds>;

/** All money of a project. Decides alone on the limits of its agents, its teams and its own. */
export interface Ledger {
  readonly bounds: LedgerBounds;
  readonly organizationId: string;
  readonly projectId: string;
  /** Raised by every update: a ledger from a backup is behind revisions seen before. */
  revision: number;
  /** Newest revision that the records were known to show: records from a backup are behind it. */
  recordedRevision: number;
  calendar: Calendar;
  project: Level;
  /** Teams that ever had a cap, rules or an account. */
  readonly teams: Map<string, Level>;
  readonly accounts: Map<string, Account>;
  readonly keys: ClosedKeys;
  readonly replies: ReplyCache;
  /** Number of accounts dropped after their last open payment ended. */
  droppedAccounts: number;
  /** Ledger revision at the last drop of an account. */
  droppedRevision: number;
  /**
   * Maximum number of payments that an account had closed when dropped; an account that comes back counts on from it.
   */
  droppedClosed: number;
  /** Upper bound of the accounts' packed bytes: the sum over all accounts. */
  weightBytes: number;
  weighedAt: number;
  /** Number of open payments of all accounts. */
  openPayments: number;
  /** Agents whose accounts the current batch has changed. */
  readonly touched: Set<string>;
}

export const newLedger = (
  organizationId: string,
  projectId: string,
  bounds: LedgerBounds = LEDGER_BOUNDS,
): Ledger => ({
  bounds,
  organizationId,
  projectId,
  revision: 0,
  recordedRevision: 0,
  calendar: UTC_CALENDAR,
  project: NEW_LEVEL,
  teams: new Map(),
  accounts: new Map(),
  keys: noClosedKeys(),
  replies: new Map(),
  droppedAccounts: 0,
  droppedRevision: 0,
  droppedClosed: 0,
  weightBytes: 0,
  weighedAt: 0,
  openPayments: 0,
  touched: new Set(),
});

export interface NewAccount {
  readonly agentId: string;
  readonly teamId: string;
  readonly name: string;
  readonly policy: BudgetPolicy;
  readonly keyId: string | null;
}

export const newAccount = ({ agentId, keyId, name, policy, teamId }: NewAccount, now: number): Account => ({
  agentId,
  teamId,
  name,
  status: "active",
  keyId,
  followedRevision: 0,
  policy,
  policyVersion: 1,
  rulesVersion: 0,
  usage: emptyUsage(),
  sequence: 0,
  open: new Map(),
  closed: 0,
  evictedThrough: 0,
  // The create writes the agent's first record.
  revision: 1,
  foreseenSequence: 0,
  confirmedRevision: 1,
  updatedAt: now,
  mirroredPolicyVersion: 1,
  pausedAt: null,
  isStatusTold: true,
  revokedKeyId: null,
  grant: null,
  outbox: [],
  weightBytes: 0,
});

export const levelOf = ({ teams }: Ledger, teamId: string): Level => teams.get(teamId) ?? NEW_LEVEL;

/** The part of an agent's record that the ledger decides; written under its revision. */
export interface AccountSummary {
  readonly agentId: string;
  readonly status: AccountStatus;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  readonly spentCents: number;
  readonly reservedCents: number;
  /** Key that a stop has revoked, which the record may still show. */
  readonly revokedKeyId: string | null;
  readonly revision: number;
  readonly updatedAt: number;
  /** Events for the journal; repeated until the record of this revision is confirmed. */
  readonly events: readonly LifecycleEvent[];
  /** Missing if the next revision is reserved for no payment's charge. */
  readonly onceCharged?: OnceCharged;
}

export const summaryOf = (account: Account): AccountSummary => ({
  agentId: account.agentId,
  status: account.status,
  policy: account.policy,
  policyVersion: account.policyVersion,
  spentCents: usedCents(account.usage.spentMc),
  reservedCents: usedCents(account.usage.reservedMc),
  revokedKeyId: account.revokedKeyId,
  revision: account.revision,
  updatedAt: account.updatedAt,
  events: account.outbox,
  ...onceCharged(account),
});

/** Returns the owner of a payment, as copied into its records and events. */
export const profileIn = (
  { organizationId, projectId }: Pick<Ledger, "organizationId" | "projectId">,
  { agentId, name, teamId }: Pick<Account, "agentId" | "teamId" | "name">,
): AgentProfile => ({ organizationId, projectId, teamId, agentId, name });
