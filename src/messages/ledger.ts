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

/** Names and payloads of the messages to a project's ledger; shared by the workflow and its callers. */

export const LEDGER_WORKFLOW = "ledger";
export const ledgerWorkflowId = (projectId: string): string => `ledger/${projectId}`;

/** The address of a ledger. */
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
  /** Age at which an unconfirmed effect is executed by the ledger's sweep. */
  readonly sweepAfterSeconds: number;
  /** Rolls over to a new run at this history length, or when the engine suggests it. */
  readonly rollOverAfterEvents: number;
}

/** An update costs more the more events its run has, and a run is replayed whole where its worker was killed, so runs are short: some 100 updates. */
export const LEDGER_SETTINGS: LedgerSettings = { sweepAfterSeconds: 10, rollOverAfterEvents: 500 };

/**
 * Timeout of a ledger's workflow task. After a worker's death the project decides nothing until it is over; but the
 * replay of a run on a loaded worker has to finish within it, too.
 */
export const LEDGER_TASK_TIMEOUT_SECONDS = 2;

/** The one update of a ledger: a batch of commands, judged one after another in one workflow task. */
export const LEDGER_SUBMIT_UPDATE = "submit";

/** Commands that go in one update at the most: so many with a waiting caller, and as many confirmations. */
export const LEDGER_BATCH_MAX = 128;
export const LEDGER_CONFIRMATIONS_MAX = 128;

/** Beyond so many changed accounts an update answers those that its commands name, and the ledger writes the others' records. */
export const LEDGER_SUMMARIES_MAX = 1_000;

/** The ledger revisions that the sender of an update knows. */
export interface KnownRevisions {
  /** The newest revision that was seen: a ledger that is behind it was restored from a backup. */
  readonly ledger: number;
  /** The newest one that the records are known to show. */
  readonly recorded: number;
  /** Whether the records were read for this update: records that are behind the ledger's recorded revision were restored from a backup. */
  readonly isRead: boolean;
}

/** Revisions of a caller that knows none. */
export const NOTHING_KNOWN: KnownRevisions = { ledger: 0, recorded: 0, isRead: false };

export interface LedgerSubmitResult {
  /** The ledger's revision after this update. */
  readonly revision: number;
  /** Replies to the commands, in order. */
  readonly replies: readonly LedgerReply[];
  /** Fill of the ledger. */
  readonly fill: Fill;
  /** The accounts that have changed so that their agents' records are to follow; not those whose records the ledger writes. */
  readonly accounts: readonly AccountSummary[];
  /** Closed payments of each agent whose idempotency keys were evicted, by agent. */
  readonly closed: Readonly<Record<string, number>>;
  /** The zone of its calendar, for a server with newer offsets to send them; left out of UTC, which has none. */
  readonly zone?: Omit<Zone, "segments">;
}

/** An agent's account as of `now`; with a payment, also what that would get. No effect. */
export const ACCOUNT_QUERY = "account";

export interface AccountQueryInput {
  readonly agentId: string;
  /** The caller's time: a query runs at the time of the ledger's last task, which may be long ago. */
  readonly now: number;
  /** The caller has checked the records for a similar payment, if a rule needs that, after flushing its confirmations to the ledger. */
  readonly payment?: AssessedPayment | null;
  /** An amount whose shortfalls are asked for. */
  readonly raiseMc?: number;
}

export interface AccountView {
  readonly status: AccountStatus;
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
  /** The least that any limit of an amount leaves at all levels, but for that of one payment. */
  readonly spendableCents: number;
  readonly spendLimits: readonly ShownSpendLimit[];
  readonly team: LevelRest;
  readonly project: LevelRest;
}

/** Rest of the cap and limits of a team or project. */
export interface LevelRest {
  /** Rest of the cap; null if there is none. */
  readonly remainingCents: number | null;
  readonly spendLimits: readonly ShownSpendLimit[];
}

/** The caps of a project and its teams, and what was used under them. No effect. */
export const CAPS_QUERY = "caps";

export interface LevelView {
  readonly cap: Cap;
  readonly totals: Totals;
}

/** A level with its spend limits in the windows of the query's time. */
export interface BudgetView extends LevelView {
  readonly spendLimits: readonly ShownSpendLimit[];
}

/** The caller's time: see `AccountQueryInput`. */
export interface CapsQueryInput {
  readonly now: number;
}

export interface TeamBudgetQueryInput extends CapsQueryInput {
  readonly teamId: string;
}

export interface CapsView {
  readonly calendar: Calendar;
  readonly project: BudgetView;
  /** Teams that are not named have no cap, and version 1, and nothing was used under them. */
  readonly teams: Readonly<Record<string, BudgetView>>;
}

/** A team's budget at one moment, so that its version is that of the agents' budgets beside it. No effect. */
export const TEAM_BUDGET_QUERY = "teamBudget";

export interface TeamBudgetView extends BudgetView {
  /** Budgets of the open accounts, by agent. */
  readonly agents: Readonly<Record<string, number>>;
}

/** Operators' view in the Temporal UI. */
export const LEDGER_STATE_QUERY = "state";

export interface LedgerStateView extends CapsView {
  readonly accounts: Readonly<Record<AccountStatus, number>>;
  readonly droppedAccounts: number;
  readonly openPayments: number;
  readonly closedKeys: number;
  /** An upper bound of the bytes that its state takes. */
  readonly weightBytes: number;
  readonly fill: Fill;
  /** The ledger's revision, and the newest that its records are known to show. */
  readonly revision: number;
  readonly recordedRevision: number;
}

/** Accounts with everything that is open, in the order of their agents' ids, so many at a time. For reconciliation with the records. */
export const SNAPSHOT_QUERY = "snapshot";

export interface SnapshotQueryInput {
  /** The last agent of the page before; null: the first page. */
  readonly after: string | null;
  readonly limit: number;
}

export interface AccountSnapshot extends AccountSummary {
  readonly teamId: string;
  readonly name: string;
  readonly keyId: string | null;
  /** The newest revision that the agent's record is known to show. */
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
  /** Totals of live accounts; the rest of `totals` is of dropped ones. */
  readonly accounts: Totals;
}

export interface SnapshotPage {
  readonly accounts: readonly AccountSnapshot[];
  /** All levels at this moment, with the number of dropped accounts. */
  readonly levels: readonly LevelSnapshot[];
  readonly droppedAccounts: number;
  /** Whether there are more after these. */
  readonly hasMore: boolean;
}

/** The result of executing a payment once. */
export interface Execution {
  readonly transactionId: string;
  /** Revision whose effects are all done; 0 if some are not, so that the payment is executed again. */
  readonly revision: number;
  /** The rail's, if it was called. */
  readonly outcome: { readonly result: RailOutcome; readonly at: number } | null;
  /** An attempt has failed. */
  readonly hasFailed?: true;
}

export interface ExecutionResult extends Execution {
  /** The payment after its rail's outcome. */
  readonly payment: Payment;
}

/** The confirmation of it for the ledger. */
export const confirmationOf = (
  agentId: string,
  { outcome, revision, transactionId }: Execution,
): CommandOf<"confirm"> => ({ kind: "confirm", agentId, transactionId, revision, outcome });

export type { LedgerCommand, LedgerReply };
