import { type Calendar, type WindowBounds, windowBounds } from "./calendar.ts";
import type { DroppedAccount, DroppedWindows } from "./commands.ts";
import { moneyOf, type MoneyHolder, type Payment, type StoredPayment, withoutTexts } from "./payment.ts";
import type { BudgetPolicy } from "./policy.ts";
import { countPayment, emptyUsage, HISTORY_MS, type Usage, utcDate } from "./usage.ts";
import { judge } from "./judge.ts";
import { markWithdrawn } from "./pausing.ts";
import {
  type Account,
  type Cap,
  type Ledger,
  type LedgerBounds,
  type Level,
  NEW_LEVEL,
  newAccount,
  newLedger,
  type OpenPayment,
  type Totals,
} from "./state.ts";
import { levelsBytes, weightOf } from "./weight.ts";
import { countedInEach, countedOn, countedSince, windowAtOf } from "./counted.ts";
import { fullMinute, NO_WINDOWS, plusEach, type Windows } from "./windows.ts";

/** Restores a lost ledger from its records. */

export interface RecordedLevel {
  readonly cap: Cap;
  /** 0 if none were ever set. */
  readonly rulesVersion: number;
}

export interface RecordedProject {
  readonly organizationId: string;
  readonly projectId: string;
  /** Newest revision of the ledger that the records show. */
  readonly revision: number;
  /** Calendar, with the offsets of its zone for the time of the restore. */
  readonly calendar: Calendar;
  readonly project: RecordedLevel;
  readonly teams: ReadonlyMap<string, RecordedLevel>;
  /** Agents that are not archived, and archived ones with something left to do. */
  readonly accounts: readonly RecordedAccount[];
  /** Amounts of all other agents. */
  readonly others: readonly ({ readonly teamId: string } & RecordedAmounts)[];
  /** Number of archived agents that no longer need an account. */
  readonly droppedAccounts: number;
}

export interface RecordedAccount {
  readonly agentId: string;
  readonly teamId: string;
  readonly name: string;
  readonly keyId: string | null;
  /** Key that the lost ledger revoked and the agent's actor still has; null if there is none. */
  readonly revokedKeyId: string | null;
  readonly status: "active" | "paused";
  readonly isArchived: boolean;
  /** Revision of the agent's actor that name, key and archival are from. */
  readonly agentRevision: number;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  /** Version of the agent's restrictions; 0 if none were ever set. */
  readonly rulesVersion: number;
  /** Whether the wallet may not mirror the policy yet. */
  readonly isUnmirrored: boolean;
  /** Account revision that the record shows, and the newest one known. */
  readonly recordedRevision: number;
  readonly knownRevision: number;
  readonly updatedAt: number;
  readonly payments: RecordedPayments;
}

/** Sums of payments, in total and by window. */
export interface RecordedAmounts extends Totals {
  readonly amountSince: (since: number) => number;
  /** Newest instant at which any amount counts in windows; 0 if none does. */
  readonly newestAt: number;
}

export interface RecordedPayments extends RecordedAmounts {
  /** Highest sequence number of a payment. */
  readonly sequence: number;
  /** Creation times of accepted payments, by sequence number; a clock may have gone back in between. */
  readonly countedAt: readonly number[];
  /** Newest day on which anything is counted. */
  readonly day: Usage["day"];
  /** Payments with something left to execute or publish. */
  readonly open: readonly Payment[];
}

/**
 * Gap added to an account's revision and policy version, so that unrecorded messages of the lost ledger under its last
 * revisions are not mistaken for this ledger's, and every permit is above all fences.
 */
const REVISION_GAP = 1_000;
/**
 * Gap added to the ledger's own revision, which updates without a record, such as confirmations, also raise, and to the
 * versions of budgets, which records show some seconds late.
 */
const LEDGER_REVISION_GAP = 1_000_000;

/**
 * Restores the ledger from its records. Open payments are executed at once as if unconfirmed: their rails are called
 * with the payments' ids, so that each pays once, whichever sender has begun. Idempotency keys of ended payments are
 * looked up in the records. The caller has waited until the lost ledger's decisions are sent and recorded.
 */
export function restoredLedger(recorded: RecordedProject, now: number, bounds?: LedgerBounds): Ledger {
  const { accounts, calendar, droppedAccounts, organizationId, others, project, projectId, teams } = recorded;
  const ledger = newLedger(organizationId, projectId, bounds);
  ledger.droppedAccounts = droppedAccounts;
  ledger.calendar = calendar;
  const amounts = [...others, ...accounts.map(({ payments }) => payments)];
  const newestAt = amounts.reduce((newest, each) => Math.max(newest, each.newestAt), calendar.changedAt);
  const windows = windowBounds(calendar, Math.max(now, newestAt));
  ledger.revision = recorded.revision + LEDGER_REVISION_GAP;
  ledger.recordedRevision = recorded.revision;
  ledger.droppedRevision = ledger.revision;
  ledger.droppedClosed = ledger.revision;
  ledger.keys.evictedCreatedAt = now;
  setLevel(ledger, null, project);
  for (const [teamId, team] of teams) setLevel(ledger, teamId, team);
  for (const each of others) count(ledger, each.teamId, each, windowsOf(each, windows));
  for (const account of accounts) {
    const { droppedClosed } = ledger;
    put(ledger, restoredAccount(account, droppedClosed, now, windowsOf(account.payments, windows)), now);
  }
  for (const { agentId, agentRevision: revision, isArchived, name } of accounts) {
    if (isArchived) close(ledger, { agentId, revision, name }, now);
  }
  ledger.weightBytes += levelsBytes(ledger);
  ledger.touched.clear();
  return ledger;
}

function setLevel(ledger: Ledger, teamId: string | null, { cap, rulesVersion }: RecordedLevel): void {
  const raised = { ...cap, version: cap.version + LEDGER_REVISION_GAP };
  const level = { ...NEW_LEVEL, cap: raised, rulesVersion, recordedCapVersion: cap.version };
  if (teamId === null) ledger.project = level;
  else ledger.teams.set(teamId, level);
}

const windowsOf = ({ amountSince, newestAt }: RecordedAmounts, { at, starts }: WindowBounds): Windows =>
  newestAt === 0 ? NO_WINDOWS : { at: fullMinute(at), mc: starts.map(amountSince) };

function count(ledger: Ledger, teamId: string, { reservedMc, spentMc }: Totals, windows: Windows): void {
  const plus = (level: Level): Level => ({
    ...level,
    totals: {
      spentMc: level.totals.spentMc + spentMc,
      reservedMc: level.totals.reservedMc + reservedMc,
    },
    windows: windows.at === 0 ? level.windows : plusEach({ ...level.windows, at: windows.at }, windows.mc),
  });
  ledger.teams.set(teamId, plus(ledger.teams.get(teamId) ?? NEW_LEVEL));
  ledger.project = plus(ledger.project);
}

function put(ledger: Ledger, account: Account, now: number): void {
  account.weightBytes = weightOf(account, now);
  ledger.accounts.set(account.agentId, account);
  ledger.weightBytes += account.weightBytes;
  ledger.openPayments += account.open.size;
  count(ledger, account.teamId, account.usage, account.usage.windows);
}

/**
 * `closedBefore` exceeds every count of the lost ledger, so that records read for that ledger are not mistaken for new.
 */
function restoredAccount(
  recorded: RecordedAccount,
  closedBefore: number,
  now: number,
  windows: Windows,
): Account {
  const { agentId, isArchived, keyId, name, payments, policy, status, teamId } = recorded;
  const open = new Map(
    payments.open.map((payment) => [payment.request.transactionId, unconfirmed(payment, now)]),
  );
  const closed = closedBefore + payments.sequence - open.size;
  const policyVersion = recorded.policyVersion + REVISION_GAP;
  const account: Account = {
    ...newAccount({ agentId, teamId, name, policy, keyId }, recorded.updatedAt),
    revokedKeyId: recorded.revokedKeyId,
    status,
    isStatusTold: false,
    // The ledger has yet to follow the archival.
    followedRevision: recorded.agentRevision - (isArchived ? 1 : 0),
    policyVersion,
    rulesVersion: recorded.rulesVersion,
    mirroredPolicyVersion: recorded.isUnmirrored ? 0 : policyVersion,
    usage: { ...restoredUsage(payments, now), windows },
    sequence: payments.sequence,
    open,
    closed,
    evictedThrough: closed === closedBefore ? 0 : closed,
    revision: recorded.knownRevision + REVISION_GAP,
    confirmedRevision: recorded.recordedRevision,
    pausedAt: status === "paused" ? now : null,
  };
  // A paused account without a key is an emergency stop. An archived agent's record does not say whether the agent was
  // paused, so nothing is sent that can be withdrawn.
  if (isArchived || (status === "paused" && keyId === null)) markWithdrawn(account, now);
  return account;
}

const unconfirmed = (payment: StoredPayment, now: number): OpenPayment => ({
  payment: withoutTexts(payment),
  changedAt: now,
  confirmedRevision: 0,
  dueAt: now,
});

function restoredUsage({ countedAt, day, reservedMc, spentMc }: RecordedPayments, now: number): Usage {
  const usage = emptyUsage();
  for (const at of countedAt) if (at > now - HISTORY_MS) countPayment(usage, at);
  return { ...usage, spentMc, reservedMc, day: { ...day } };
}

function close(
  ledger: Ledger,
  agent: { readonly agentId: string; readonly revision: number; readonly name: string },
  now: number,
): void {
  const closing = { kind: "follow_agent", ...agent, keyId: null, isArchived: true } as const;
  const reply = judge(ledger, closing, now);
  if (reply.kind === "failed") throw new Error(reply.message);
}

/** Collects an agent's payments for `RecordedPayments`, in any order. */
export class PaymentsOfRecords {
  readonly #payments: CountedPayment[] = [];
  readonly #open: Payment[] = [];

  add(payment: CountedPayment): void {
    this.#payments.push(payment);
  }

  open(payment: Payment): void {
    this.#open.push(payment);
  }

  /** Number of payments, by their sequence numbers, that were not added. */
  get missing(): number {
    return (
      this.#payments.reduce((highest, { sequence }) => Math.max(highest, sequence), 0) - this.#payments.length
    );
  }

  get all(): RecordedPayments {
    const payments = this.#payments.toSorted((one, other) => one.sequence - other.sequence);
    const sumOf = (money: "heldMc" | "spentMc"): number =>
      payments.reduce((sum, each) => sum + moneyOf(each)[money], 0);
    const passed = payments.filter((payment) => !isDeniedAtOnce(payment));
    return {
      spentMc: sumOf("spentMc"),
      reservedMc: sumOf("heldMc"),
      sequence: payments.at(-1)?.sequence ?? 0,
      countedAt: passed.map(({ createdAt }) => createdAt),
      day: newestDay(passed),
      amountSince: (since) => payments.reduce((sum, each) => sum + countedSince(each, since), 0),
      newestAt: passed.reduce((newest, each) => Math.max(newest, newestAt(each)), 0),
      open: this.#open.toSorted((one, other) => one.sequence - other.sequence),
    };
  }
}

export type CountedPayment = MoneyHolder &
  Pick<Payment, "createdAt" | "day" | "revision" | "sequence" | "windowAt"> & {
    /** Whether the payment was held; an approval moves its amount to another day, but not its count. */
    readonly wasHeld: boolean;
  };

const newestAt = (payment: CountedPayment): number =>
  (payment.books?.bookings ?? []).reduce((newest, { at }) => Math.max(newest, at), windowAtOf(payment));

/** Whether policy denied the payment at once. One that is denied later has a higher revision. */
const isDeniedAtOnce = ({ revision, status }: CountedPayment): boolean =>
  status === "denied" && revision === 1;

/**
 * Returns the newest day in sequence order. A counted day is never left for an earlier one, whatever the clock says.
 */
function newestDay(passed: readonly CountedPayment[]): Usage["day"] {
  const day = { date: "", amountMc: 0, count: 0 };
  const reach = (date: string): void => {
    if (date > day.date) Object.assign(day, { date, amountMc: 0, count: 0 });
  };
  for (const { createdAt, day: ofAmount, wasHeld } of passed) {
    const ofCount = wasHeld ? utcDate(createdAt) : ofAmount;
    reach(ofCount);
    if (wasHeld || ofCount === day.date) day.count += 1;
  }
  for (const payment of passed) reach(payment.day);
  for (const payment of passed) {
    for (const { day: bookedOn } of payment.books?.bookings ?? []) reach(bookedOn);
  }
  for (const payment of passed) day.amountMc += countedOn(payment, day.date);
  return day;
}

/** Amounts of an archived agent, all of its payments closed. */
type ClosedAmounts = Pick<DroppedAccount, "closed" | "day" | "spentMc" | "windows">;

export const noAmounts = ({ at, starts }: DroppedWindows): ClosedAmounts => ({
  spentMc: 0,
  day: { date: "", amountMc: 0, count: 0 },
  windows: { at: fullMinute(at), mc: starts.map(() => 0) },
  closed: 0,
});

/** Returns the amounts with those of one more payment. */
export const plusPayment = (
  { closed, day, spentMc, windows }: ClosedAmounts,
  payment: MoneyHolder & Pick<Payment, "createdAt" | "day" | "windowAt">,
  bounds: DroppedWindows,
): ClosedAmounts => ({
  spentMc: spentMc + moneyOf(payment).spentMc,
  day: dayWith(day, payment),
  windows: plusEach(windows, countedInEach(payment, bounds)),
  closed: closed + 1,
});

/** Returns the newest day on which anything counts, including one more payment, with the amounts on it. */
function dayWith(day: Usage["day"], payment: MoneyHolder & Pick<Payment, "day">): Usage["day"] {
  const days = [payment.day, ...(payment.books?.bookings ?? []).map((booking) => booking.day)];
  const date = days.reduce((newest, each) => (each > newest ? each : newest), day.date);
  const before = date === day.date ? day.amountMc : 0;
  return { date, amountMc: before + countedOn(payment, date), count: 0 };
}
