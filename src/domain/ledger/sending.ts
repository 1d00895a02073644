import { isInFlight, type Lease, leaseUntil } from "./lease.ts";
import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";
import type { Account, OpenPayment } from "./state.ts";

/**
 * Leases: who may send a decided payment. A payment is handed to its rail for the first time only with its ledger's lease: the
 * decision gives it, and the ledger grants it again on request. It is valid for a moment; a pause is answered once all leases
 * have expired. So nothing is begun after that answer, though no process is queried about what it is about to do.
 */

/** A process may send a payment of this account now. */
export function grantLease(account: Account, now: number): void {
  account.leaseUntil = leaseUntil(now);
}

/** Replies to a process that is about to send a payment, or to send it again after it was reverted on its rail. */
export function requestLease(
  draft: Draft,
  { agentId, transactionId }: CommandOf<"request_lease">,
): LedgerReply {
  const account = draft.account(agentId);
  const open = account?.open.get(transactionId);
  if (account === undefined || open === undefined) return { kind: "not_open" };
  if (!isInFlight(open.payment)) return { kind: "payment", changed: false, payment: open.payment };
  const lease = leaseOf(account, open);
  if (lease === "send") grantLease(account, draft.now);
  return { kind: "lease", lease };
}

function leaseOf({ status }: Account, { isWithdrawn }: OpenPayment): Lease {
  if (isWithdrawn === true) return "withdraw";
  return status === "paused" ? "wait" : "send";
}

/** How long until all granted leases have expired. */
export function quietAfterMs({ leaseUntil: until, open }: Account, now: number): number {
  const isAnyInFlight = [...open.values()].some(({ payment }) => isInFlight(payment));
  // A clock that went back makes it no longer than a lease is ever good for.
  return isAnyInFlight ? Math.max(0, Math.min(until, leaseUntil(now)) - now) : 0;
}

/** Withdraws what was decided and not sent. */
export function withdrawOpen({ open }: Account, now: number): void {
  for (const [id, each] of open) {
    if (isInFlight(each.payment)) open.set(id, woken({ ...each, isWithdrawn: true }, now));
  }
}

/** Makes payments that waited for the agent to be resumed due at once. */
export function wakeOpen({ open }: Account, now: number): void {
  for (const [id, each] of open) open.set(id, woken(each, now));
}

const woken = (open: OpenPayment, now: number): OpenPayment =>
  open.payment.phase === "sending" ? { ...open, dueAt: now } : open;
