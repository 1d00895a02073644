import { isArmed, type Rail } from "./payment.ts";
import type { Account, Ledger, Level, OpenPayment } from "./state.ts";

/** Due times of effects that the ledger's sweep executes because no process confirmed them in time. */

export interface SweepSettings {
  /** Age at which the sweep executes an unconfirmed effect. */
  readonly sweepAfterMs: number;
}

/** Maximum interval at which the rails of a paused agent's payments are polled, with backoff. */
const PAUSED_POLL_MAX_MS = 3_600_000;

/**
 * Delay of the ledger's own expiry of a held payment, as a multiple of the usual pause. Normally the approval's
 * workflow expires the payment, but it may have been terminated, and is never started twice.
 */
const OVERDUE_SWEEPS = 2;

/** Maximum doublings of the pause after repeated failures. */
const BACKOFF_DOUBLINGS_MAX = 5;

const pauseMs = ({ failures = 0 }: OpenPayment, { sweepAfterMs }: SweepSettings): number =>
  sweepAfterMs * 2 ** Math.min(Math.max(0, failures - 1), BACKOFF_DOUBLINGS_MAX);

/** Returns when the sweep executes an unconfirmed payment; Infinity if it needs no confirmation. */
export function paymentDueAt({ pausedAt }: Account, open: OpenPayment, settings: SweepSettings): number {
  const { changedAt, confirmedRevision, dueAt, isWithdrawn, payment } = open;
  const { sweepAfterMs } = settings;
  if (dueAt !== undefined) return dueAt;
  if (isWithdrawn !== true && pausedAt !== null && payment.phase === "sending") {
    // A process that began sending before the pause may have reached the rail and died, which becomes ever less likely.
    return changedAt + Math.min(Math.max(sweepAfterMs, changedAt - pausedAt), PAUSED_POLL_MAX_MS);
  }
  if (confirmedRevision < payment.revision) return changedAt + pauseMs(open, settings);
  if (payment.card !== undefined && isArmed(payment)) return Math.max(payment.card.readyUntil, changedAt);
  const expiresAt = payment.phase === "held" ? payment.approval?.expiresAt : undefined;
  return expiresAt === undefined ? Infinity : Math.max(expiresAt, changedAt) + OVERDUE_SWEEPS * sweepAfterMs;
}

/** Returns when the sweep writes an agent's record; Infinity if it is up to date. */
const recordDueAt = (account: Account, { sweepAfterMs }: SweepSettings): number =>
  account.confirmedRevision < account.revision ? account.updatedAt + sweepAfterMs : Infinity;

export function accountDueAt(account: Account, settings: SweepSettings): number {
  let soonest = recordDueAt(account, settings);
  for (const open of account.open.values())
    soonest = Math.min(soonest, paymentDueAt(account, open, settings));
  return soonest;
}

/** Returns when the sweep writes a cap into its record; Infinity if it is up to date. */
export const capDueAt = (level: Level, { sweepAfterMs }: SweepSettings): number =>
  level.recordedCapVersion < level.cap.version ? level.capChangedAt + sweepAfterMs : Infinity;

const AT_ONCE: SweepSettings = { sweepAfterMs: 0 };
const NO_AGENTS: ReadonlySet<string> = new Set();

export type Due =
  | {
      readonly kind: "payment";
      readonly agentId: string;
      readonly transactionId: string;
      readonly rail: Rail;
    }
  | { readonly kind: "record"; readonly agentId: string }
  | { readonly kind: "cap"; readonly teamId: string | null };

/**
 * Returns what is due now, and when the next effect is due. Scans every account, so it is only called when something is
 * known to be due. `unshared`: agents whose changed accounts no server has been told of, so that none writes their
 * records.
 */
export function dueNow(
  ledger: Ledger,
  settings: SweepSettings,
  now: number,
  unshared: ReadonlySet<string> = NO_AGENTS,
): { due: Due[]; nextAt: number } {
  const due: Due[] = [];
  let nextAt = Infinity;
  const note = (at: number, what: Due): void => {
    if (at <= now) due.push(what);
    else nextAt = Math.min(nextAt, at);
  };
  note(capDueAt(ledger.project, settings), { kind: "cap", teamId: null });
  for (const [teamId, level] of ledger.teams) note(capDueAt(level, settings), { kind: "cap", teamId });
  for (const account of ledger.accounts.values()) {
    const { agentId } = account;
    const isIdle = account.open.size === 0 && account.confirmedRevision >= account.revision;
    if (isIdle) continue;
    note(recordDueAt(account, unshared.has(agentId) ? AT_ONCE : settings), { kind: "record", agentId });
    for (const [transactionId, open] of account.open) {
      const { rail } = open.payment.request;
      note(paymentDueAt(account, open, settings), { kind: "payment", agentId, transactionId, rail });
    }
  }
  return { due, nextAt };
}

/** Postpones a payment: by the usual pause if it waits, by a growing one if it failed. Clears `dueAt`. */
export function postpone(
  account: Account,
  transactionId: string,
  now: number,
  reason: "waits" | "failed",
): void {
  const open = account.open.get(transactionId);
  if (open === undefined) return;
  const { dueAt: _dueAt, failures = 0, ...rest } = open;
  const tried = reason === "failed" ? { failures: failures + 1 } : {};
  account.open.set(transactionId, { ...rest, ...tried, changedAt: now });
}

/**
 * Retries a failed payment once after the usual pause, because its rail has answered other payments. If it fails again,
 * the rail was not the cause, and its own backoff applies. Returns the due time; Infinity if unchanged.
 */
export function expedite(account: Account, transactionId: string, { sweepAfterMs }: SweepSettings): number {
  const open = account.open.get(transactionId);
  if (open?.failures === undefined || open.isExpedited === true) return Infinity;
  const dueAt = open.changedAt + sweepAfterMs;
  account.open.set(transactionId, { ...open, dueAt, isExpedited: true });
  return dueAt;
}
