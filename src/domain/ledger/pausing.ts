import { type Fence, isInFlight, type Permission } from "./permission.ts";
import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";
import { AGENT_PAUSED, disarmed, isArmed, perRail } from "./payment.ts";
import type { Account, OpenPayment } from "./state.ts";

/** Replies to a process that is about to send a payment, or to resend one that its rail reverted. */
export function requestPermission(
  draft: Draft,
  { agentId, transactionId }: CommandOf<"request_permission">,
): LedgerReply {
  const account = draft.account(agentId);
  const open = account?.open.get(transactionId);
  if (account === undefined || open === undefined) return { kind: "not_open" };
  if (!isInFlight(open.payment)) return { kind: "payment", changed: false, payment: open.payment };
  return { kind: "permission", permission: permissionOf(account, open) };
}

function permissionOf({ revision, status }: Account, { isWithdrawn, payment }: OpenPayment): Permission {
  // A purchase waits for its caller, and no key of an archived agent comes back to complete it.
  const isAbandoned = status === "closed" && payment.request.protocol !== undefined;
  if (isWithdrawn === true || isAbandoned) return { kind: "withdraw" };
  return status === "paused" ? { kind: "wait", fence: revision } : { kind: "send", permit: revision };
}

/** Returns the fence to lay before a stop is answered; null if nothing is in flight, or after a resume. */
export function fenceOf({ open, revision, status }: Account): Fence | null {
  if (status === "active") return null;
  const requests = [...open.values()].flatMap(({ payment }) =>
    isInFlight(payment) ? [payment.request] : [],
  );
  if (requests.length === 0) return null;
  const idsOn = (on: string): string[] =>
    requests.flatMap(({ rail, transactionId }) => (rail === on ? [transactionId] : []));
  return { fence: revision, payments: perRail(idsOn) };
}

/** Withdraws payments that are decided and not sent. Armed payments end at once, and their cards are closed next. */
export function withdrawOpen(draft: Draft, account: Account): void {
  const { now } = draft;
  for (const [id, each] of account.open) {
    if (!isArmed(each.payment)) continue;
    const payment = disarmed(each.payment, AGENT_PAUSED, now);
    draft.change(account, payment);
    account.open.set(id, { ...each, payment, changedAt: now, dueAt: now });
  }
  markWithdrawn(account, now);
}

export function markWithdrawn({ open }: Account, now: number): void {
  for (const [id, each] of open) {
    if (isInFlight(each.payment)) open.set(id, woken({ ...each, isWithdrawn: true }, now));
  }
}

/** Makes payments due at once that waited for the agent's resume. */
export function wakeOpen({ open }: Account, now: number): void {
  for (const [id, each] of open) open.set(id, woken(each, now));
}

const woken = (open: OpenPayment, now: number): OpenPayment =>
  open.payment.phase === "sending" ? { ...open, dueAt: now } : open;
