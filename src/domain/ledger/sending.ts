import { isOnItsWay, type Lease, leaseUntil } from "./lease.ts";
import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";
import type { Account, OpenPayment } from "./state.ts";

/**
 * Who may send what was decided. A payment is handed to its rail for the first time only with its ledger's lease: the
 * decision gives it, and the ledger gives it again to whoever asks. It is good for a moment; who has paused the agent is
 * answered once that is over. So nothing is begun after that answer, though no process is asked what it is about to do.
 */

/** A process may send a payment of this account now. */
export function grantLease(account: Account, now: number): void {
  account.leaseUntil = leaseUntil(now);
}

/** Answers a process that is about to send a payment, or to send it again after its rail has undone it. */
export function requestLease(
  draft: Draft,
  { agentId, transactionId }: CommandOf<"request_lease">,
): LedgerReply {
  const account = draft.account(agentId);
  const open = account?.open.get(transactionId);
  if (account === undefined || open === undefined) return { kind: "not_open" };
  if (!isOnItsWay(open.payment)) return { kind: "payment", changed: false, payment: open.payment };
  const lease = leaseOf(account, open);
  if (lease === "send") grantLease(account, draft.now);
  return { kind: "lease", lease };
}

function leaseOf({ standing }: Account, { isWithdrawn }: OpenPayment): Lease {
  if (isWithdrawn === true) return "withdraw";
  return standing === "paused" ? "wait" : "send";
}

/** How long it takes until no process begins to send any more of what it was given a lease for. */
export function quietAfterMs({ leaseUntil: until, open }: Account, now: number): number {
  const isAnyOnItsWay = [...open.values()].some(({ payment }) => isOnItsWay(payment));
  // A clock that went back makes it no longer than a lease is ever good for.
  return isAnyOnItsWay ? Math.max(0, Math.min(until, leaseUntil(now)) - now) : 0;
}

/** What was decided and not sent is not to be sent any more. */
export function withdrawOpen({ open }: Account, now: number): void {
  for (const [id, each] of open) {
    if (isOnItsWay(each.payment)) open.set(id, woken({ ...each, isWithdrawn: true }, now));
  }
}

/** What waited for the agent to be resumed is seen to at once. */
export function wakeOpen({ open }: Account, now: number): void {
  for (const [id, each] of open) open.set(id, woken(each, now));
}

const woken = (open: OpenPayment, now: number): OpenPayment =>
  open.payment.phase === "sending" ? { ...open, dueAt: now } : open;
