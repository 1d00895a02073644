import type { Payment, RailOutcome, StoredPayment } from "../domain/ledger/payment.ts";
import type { BudgetPolicy } from "../domain/ledger/policy.ts";
import type { Fill } from "../domain/ledger/capacity.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../domain/ledger/commands.ts";
import type { PackedLedger } from "../domain/ledger/pack.ts";
import type { Calendar, Zone } from "../domain/ledger/calendar.ts";
import type { AssessedPayment, Assessment } from "../domain/ledger/pay.ts";
import type { RaiseBasis, Shortfall } from "../domain/ledger/raises.ts";
import type { AccountSummary, Cap, AccountStatus, Totals } from "../domain/ledger/state.ts";
import type { ShownSpendLimit } from "../domain/ledger/windows.ts";

/** Names and payloads of the messages to a project's ledger, shared by the workflow and its callers. */

export const LEDGER_WORKFLOW = "ledger";
export const ledgerWorkflowId = (projectId: string): string => `ledger/${projectId}`;

export interface ProjectRef {
  readonly organizationId: string;
  readonly projectId: string;
}

/** Start of a project's ledger, or its continuation after continue-as-new. */
export interface LedgerInput {
  readonly start:
    ({ readonly kind: "create" } & ProjectRef) | { readonly kind: "resume"; readonly ledger: PackedLedger };
  readonly settings: LedgerSettings;
}

export interface LedgerSettings {
  /** Age at which the ledger's sweep executes an unconfirmed effect. */
  readonly sweepAfterSeconds: number;
  /** History length at which the workflow continues as new, unless Temporal suggests it earlier. */
  readonly rollOverAfterEvents: number;
}

/** Runs are short, about 100 updates: long histories slow updates, and a killed worker's runs are replayed. */
export const LEDGER_SETTINGS: LedgerSettings = { sweepAfterSeconds: 10, rollOverAfterEvents: 500 };

/**
 * Timeout of a ledger's workflow task. After a worker's death the project decides nothing until it expires; but the
 * replay of a run on a loaded worker also has to finish within it.
 */
export const LEDGER_TASK_TIMEOUT_SECONDS = 5;

/** The only update of a ledger: a batch of commands, judged one after another in one workflow task. */
export const LEDGER_SUBMIT_UPDATE = "submit";

/** Maximum commands with a waiting caller per update, and maximum confirmations. */
export const LEDGER_BATCH_MAX = 128;
export const LEDGER_CONFIRMATIONS_MAX = 128;

/**
 * Maximum changed accounts in an update's response. Beyond it, the response holds only the accounts that its commands
 * name, and the ledger writes the other records.
 */
export const LEDGER_SUMMARIES_MAX = 1_000;

/** Ledger revisions that the sender of an update knows. */
export interface KnownRevisions {
  /** Newest revision seen. A ledger behind it was restored from a backup. */
  readonly ledger: number;
  /** Newest revision that the records are known to show. */
  readonly recorded: number;
  /** Whether the records were read for this update; if behind the ledger's, they were restored from a backup. */
  readonly isRead: boolean;
}

export const NOTHING_KNOWN: KnownRevisions = { ledger: 0, recorded: 0, isRead: false };

export interface LedgerSubmitResult {
  /** Ledger revision after this update. */
  readonly revision: number;
  /** Replies to the commands, in order. */
  readonly replies: readonly LedgerReply[];
  readonly fill: Fill;
  /** Changed accounts whose records the sender must write, without those that the ledger writes. */
  readonly accounts: readonly AccountSummary[];
  /** Number of closed payments of each agent with evicted idempotency keys, by agent. */
  readonly closed: Readonly<Record<string, number>>;
  /** Zone of the calendar, so that a server with newer offsets sends them; missing for UTC, which has none. */
  readonly zone?: Omit<Zone, "segments">;
}

/** Query of an agent's account as of `now`, and of what a given payment would get. Has no effect. */
export const ACCOUNT_QUERY = "account";

export interface AccountQueryInput {
  readonly agentId: string;
  /** The caller's time. A query runs at the time of the ledger's last task, which may be long ago. */
  readonly now: number;
  /**
   * Payment to assess. The caller has flushed its confirmations to the ledger and then, if a rule needs it, checked the
   * records for a similar payment.
   */
  readonly payment?: AssessedPayment | null;
  /** Amount to report shortfalls for. */
  readonly raiseMc?: number;
}

export interface AccountView {
  readonly status: AccountStatus;
  readonly pausedAt: number | null;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  readonly spentCents: number;
  readonly reservedCents: number;
  readonly remainingCents: number;
  readonly todayCents: number;
  readonly lastHourCount: number;
  readonly todayCount: number;
  readonly assessment: Assessment | null;
  /** Limits without room for `raiseMc`. */
  readonly shortfalls: readonly Shortfall[];
  readonly raiseBasis: RaiseBasis;
  /** Minimum remaining amount over all limits and levels, except the limit per payment. */
  readonly spendableCents: number;
  readonly spendLimits: readonly ShownSpendLimit[];
  readonly team: LevelRest;
  readonly project: LevelRest;
}

/** Remaining cap and limits of a team or project. */
export interface LevelRest {
  /** Remaining cap; null if there is none. */
  readonly remainingCents: number | null;
  readonly spendLimits: readonly ShownSpendLimit[];
}

/** Query of the caps of a project and its teams, and their usage. Has no effect. */
export const CAPS_QUERY = "caps";

export interface LevelView {
  readonly cap: Cap;
  readonly totals: Totals;
}

/** A level with its spend limits in the windows at the query's time. */
export interface BudgetView extends LevelView {
  readonly spendLimits: readonly ShownSpendLimit[];
}

/** See `AccountQueryInput` for `now`. */
export interface CapsQueryInput {
  readonly now: number;
}

export interface TeamBudgetQueryInput extends CapsQueryInput {
  readonly teamId: string;
}

export interface CapsView {
  readonly calendar: Calendar;
  readonly project: BudgetView;
  /** Teams that are missing have no cap, version 1 and no usage. */
  readonly teams: Readonly<Record<string, BudgetView>>;
}

/** Query of a team's budget at one moment, consistent with its agents' budgets. Has no effect. */
export const TEAM_BUDGET_QUERY = "teamBudget";

export interface TeamBudgetView extends BudgetView {
  /** Budgets of the open accounts, by agent. */
  readonly agents: Readonly<Record<string, number>>;
}

export const LEDGER_STATE_QUERY = "state";

export interface LedgerStateView extends CapsView {
  readonly accounts: Readonly<Record<AccountStatus, number>>;
  readonly droppedAccounts: number;
  readonly openPayments: number;
  readonly closedKeys: number;
  /** Upper bound of the state's size in bytes. */
  readonly weightBytes: number;
  readonly fill: Fill;
  /** The ledger's revision, and the newest one that its records are known to show. */
  readonly revision: number;
  readonly recordedRevision: number;
}

/** Query of accounts with everything open, in pages ordered by agent id, for reconciliation with the records. */
export const SNAPSHOT_QUERY = "snapshot";

export interface SnapshotQueryInput {
  /** Last agent of the previous page; null for the first page. */
  readonly after: string | null;
  readonly limit: number;
}

export interface AccountSnapshot extends AccountSummary {
  readonly teamId: string;
  readonly name: string;
  readonly keyId: string | null;
  /** Newest revision that the agent's record is known to show. */
  readonly confirmedRevision: number;
  readonly sequence: number;
  readonly open: readonly OpenPaymentSnapshot[];
}

export interface OpenPaymentSnapshot {
  readonly payment: StoredPayment;
  readonly confirmedRevision: number;
  readonly isWithdrawn: boolean;
}

/** The project (`teamId` null), or one of its teams. */
export interface LevelSnapshot extends LevelView {
  readonly teamId: string | null;
  readonly recordedCapVersion: number;
  readonly rulesVersion: number;
  /** Totals of live accounts; the difference to `totals` belongs to dropped ones. */
  readonly accounts: Totals;
}

export interface SnapshotPage {
  readonly accounts: readonly AccountSnapshot[];
  /** All levels at this moment, and the number of dropped accounts. */
  readonly levels: readonly LevelSnapshot[];
  readonly droppedAccounts: number;
  readonly hasMore: boolean;
}

/** Result of executing a payment once. */
export interface Execution {
  readonly transactionId: string;
  /** Revision whose effects are all done; 0 if some are not, so that the payment is executed again. */
  readonly revision: number;
  /** The rail's outcome, if the rail was called. */
  readonly outcome: { readonly result: RailOutcome; readonly at: number } | null;
  readonly hasFailed?: true;
}

export interface ExecutionResult extends Execution {
  /** The payment after its rail's outcome. */
  readonly payment: Payment;
}

/** Returns the ledger's confirmation of an execution. */
export const confirmationOf = (
  agentId: string,
  { outcome, revision, transactionId }: Execution,
): CommandOf<"confirm"> => ({ kind: "confirm", agentId, transactionId, revision, outcome });

export type { LedgerCommand, LedgerReply };
