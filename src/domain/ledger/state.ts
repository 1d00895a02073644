import type { LifecycleEvent } from "../events.ts";
import type { StoredPayment } from "./payment.ts";
import { usedCents } from "../money.ts";
import type { AgentProfile } from "../agent/state.ts";
import type { BudgetPolicy } from "./policy.ts";
import { type Calendar, UTC_CALENDAR } from "./calendar.ts";
import { emptyUsage, type Usage } from "./usage.ts";
import { NO_WINDOWS, type SpendLimits, type Windows } from "./windows.ts";
import type { Grant } from "./raises.ts";
import type { ReplyCache } from "./reply-cache.ts";
import { noClosedKeys, type ClosedKeys } from "./closed-keys.ts";

/**
 * The cap over a project or a team; null: none. The version is that of the whole budget: every replacement raises it, and so does
 * every change of a child (a team's cap, an agent's budget).
 */
export interface Cap extends SpendLimits {
  readonly capCents: number | null;
  readonly version: number;
}

export const NO_CAP: Cap = { capCents: null, version: 1 };

/** Spent and held amounts of the accounts under a cap, closed accounts included. */
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
  /** The newest version of its rules and restrictions that a payment was judged by; 0: none were ever set. */
  readonly rulesVersion: number;
  /** The newest version of its cap that its record is known to show. */
  readonly recordedCapVersion: number;
  /** Time of the oldest change of the cap or its version that its record may not show. */
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

/** Whether an account takes payments. A closed one stays until all that is open of it has come to its end. */
export type AccountStatus = "active" | "paused" | "closed";

/** A payment with something left to execute, publish or await. Replaced as a whole, never changed. */
export interface OpenPayment {
  readonly payment: StoredPayment;
  /** Time of the last change; the sweep executes what is not confirmed some time after it. */
  readonly changedAt: number;
  /** The newest revision whose effects are confirmed; 0: none yet. */
  readonly confirmedRevision: number;
  /** Earlier due time, set when the event that the payment waited for has happened. */
  readonly dueAt?: number;
  /** The payment must not be sent any more; it is released unless its rail has it. */
  readonly isWithdrawn?: true;
  /** Number of consecutive failed executions. */
  readonly failures?: number;
  /** The payment was retried early, once, because its rail answered others. */
  readonly isExpedited?: true;
}

/**
 * The money of one agent. Only a draft is ever changed (`draft.ts`); what is in the ledger is replaced as a whole, so that a
 * command that fails half-way has changed nothing.
 */
export interface Account {
  readonly agentId: string;
  readonly teamId: string;
  name: string;
  status: AccountStatus;
  /** The one key that may pay; null: none. */
  keyId: string | null;
  /** The revision of the agent's actor that name, key and closing are from. */
  followedRevision: number;
  policy: BudgetPolicy;
  policyVersion: number;
  /** The newest version of its restrictions that a payment was judged by; 0: none were ever set. */
  rulesVersion: number;
  usage: Usage;
  /** Number of payments decided so far. */
  sequence: number;
  open: Map<string, OpenPayment>;
  /** Number of payments closed so far: all is done for them, so they are in the records as they will stay. */
  closed: number;
  /** The highest of the closed payments, in the order of closing, whose key was evicted; 0: none. */
  evictedThrough: number;
  /** Raised by every change of what the agent's record shows of its account. Permits and fences are numbered by it. */
  revision: number;
  confirmedRevision: number;
  updatedAt: number;
  /** The policy that the agent's wallet mirrors. Its first one it gets when it is deployed. */
  mirroredPolicyVersion: number;
  /** Start of the pause; null while the account is not paused. */
  pausedAt: number | null;
  /** Whether the agent's actor is known to have the status. Not after a change, until it is told: what it was told before may arrive late. */
  isStatusTold: boolean;
  /** The key that a stop has revoked, until the agent's actor is known to follow; null: none. */
  revokedKeyId: string | null;
  /** The newest raise that was granted for it, until that is known to be recorded. */
  grant: Grant | null;
  /** Events that are not known to be in the journal. */
  outbox: readonly LifecycleEvent[];
  /** An upper bound of the bytes that it takes packed, as of its last change (`weight.ts`). */
  weightBytes: number;
}

/** Maximum contents of a ledger. Commands that would exceed the engine's own bounds are refused earlier. */
export interface LedgerBounds {
  /** Live accounts. */
  readonly accounts: number;
  /** Payments of one agent that are under way or on hold at once, at most, and of all agents of the project. */
  readonly openOfAgent: number;
  readonly openOfProject: number;
  /** Idempotency keys of closed payments in the ledger, over all agents; older ones are evicted, and checked in the records. */
  readonly closedKeys: number;
  /** An account is opened, a payment accepted, and one resolved by a person, only while the ledger's weight is below this. */
  readonly openedBelowBytes: number;
  readonly paidBelowBytes: number;
  readonly resolvedBelowBytes: number;
  /** A payment of an agent that has others open is accepted only while its account is below this. */
  readonly paidBelowBytesOfAgent: number;
  /** And only while it has less open than one of so many parts of what is left of the project's payments and bytes. */
  readonly partsOfRest: number;
}

export const LEDGER_BOUNDS: LedgerBounds = {
  accounts: 10_000,
  openOfAgent: 200,
  openOfProject: 2_000,
  closedKeys: 5_000,
  openedBelowBytes: 1_550_000,
  // Each bound is above the one before, so that work in progress has room to finish.
  paidBelowBytes: 1_940_000,
  resolvedBelowBytes: 1_980_000,
  paidBelowBytesOfAgent: 120_000,
  partsOfRest: 4,
};

/** Bounds of a ledger that is never packed: its accounts are not weighed. */
export const NO_BOUNDS_OF_BYTES = {
  openedBelowBytes: Infinity,
  paidBelowBytes: Infinity,
  resolvedBelowBytes: Infinity,
  paidBelowBytesOfAgent: Infinity,
} as const satisfies Partial<LedgerBounds>;

/** All money of a project: the one decider for the limits of its agents, its teams and its own. */
export interface Ledger {
  readonly bounds: LedgerBounds;
  readonly organizationId: string;
  readonly projectId: string;
  /** Raised by every update: a ledger from a backup is behind revisions that were seen before. */
  revision: number;
  /** The newest revision that the records were known to show: records from a backup are behind it. */
  recordedRevision: number;
  calendar: Calendar;
  project: Level;
  /** Teams that a cap, rules or an account were ever under. */
  readonly teams: Map<string, Level>;
  readonly accounts: Map<string, Account>;
  readonly keys: ClosedKeys;
  readonly replies: ReplyCache;
  /** Number of accounts dropped after their last open payment ended. */
  droppedAccounts: number;
  /** The ledger's revision when one was last dropped. */
  droppedRevision: number;
  /** Most payments that an account had closed when it was dropped: one that comes back counts on from there. */
  droppedClosed: number;
  /** An upper bound of the bytes that the accounts take packed: the sum of theirs. */
  weightBytes: number;
  /** Time of the last weighing of all accounts. */
  weighedAt: number;
  /** Payments open in all accounts. */
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

/** Fields that open an account. */
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
  /** The key that a stop has revoked: the record may still have it. */
  readonly revokedKeyId: string | null;
  readonly revision: number;
  readonly updatedAt: number;
  /** Events for the journal; repeated until the record of this revision is confirmed. */
  readonly events: readonly LifecycleEvent[];
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
});

/** The owner of a payment, as copied into its records and events. */
export const profileIn = (
  { organizationId, projectId }: Pick<Ledger, "organizationId" | "projectId">,
  { agentId, name, teamId }: Pick<Account, "agentId" | "teamId" | "name">,
): AgentProfile => ({ organizationId, projectId, teamId, agentId, name });
