import { disarmed, isArmed, next, NOT_CHARGED, type StoredPayment } from "./payment.ts";
import { checkLimits, type Denial } from "./policy.ts";
import { dayCounted } from "./usage.ts";
import {
  AGENT_ARCHIVED,
  cancel,
  CANCELLED_BY_AGENT,
  deny,
  endByArchive,
  expire,
  withApproval,
} from "./resolutions.ts";
import { resolutionRefused } from "./capacity.ts";
import { checkCaps } from "./caps.ts";
import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";
import { restrictionDenial } from "../rules/restrictions.ts";
import { judgedByNewestRules, statusDenial } from "./pay.ts";
import { limitUses } from "./measures.ts";
import type { Account } from "./state.ts";
import { warningsOf, withWarnings } from "./thresholds.ts";
import { countedInEach } from "./counted.ts";

/**
 * Resolutions of held and of armed payments. The first resolution wins; a payment whose approval window has closed
 * expires instead.
 */

export const approveHeld = (draft: Draft, command: CommandOf<"approve">): LedgerReply =>
  resolutionRefused(draft.ledger, draft.now) ??
  staleRules(draft, command) ??
  resolve(draft, command, (payment, account) => approved(draft, account, payment, command));

export const denyHeld = (draft: Draft, command: CommandOf<"deny">): LedgerReply =>
  resolutionRefused(draft.ledger, draft.now) ??
  resolve(draft, command, (payment) => deny(payment, command, draft.now));

export const cancelWaiting = (draft: Draft, command: CommandOf<"cancel">): LedgerReply =>
  disarm(draft, command, CANCELLED_BY_AGENT) ??
  resolve(draft, command, (payment) => cancel(payment, draft.now));

export const expireWaiting = (draft: Draft, command: CommandOf<"expire">): LedgerReply =>
  disarm(draft, command, NOT_CHARGED) ?? resolve(draft, command, (payment) => expire(payment, draft.now));

/** Ends an armed payment, an uncharged one only after its time. Null if the payment is not armed. */
function disarm(
  draft: Draft,
  { agentId, transactionId }: CommandOf<"cancel" | "expire">,
  denial: Denial,
): LedgerReply | null {
  const account = draft.account(agentId);
  const payment = account?.open.get(transactionId)?.payment;
  if (account === undefined || payment?.card === undefined || !isArmed(payment)) return null;
  if (denial === NOT_CHARGED && draft.now < payment.card.readyUntil) return null;
  const ended = disarmed(payment, denial, draft.now);
  draft.change(account, ended);
  return { kind: "payment", changed: true, payment: ended };
}

/** Returns the refusal of an approval whose restrictions' versions are outdated. */
function staleRules(
  draft: Draft,
  { agentId, rulesVersions, transactionId }: CommandOf<"approve">,
): LedgerReply | null {
  const account = draft.account(agentId);
  if (account?.open.get(transactionId)?.payment.phase !== "held") return null;
  return judgedByNewestRules(draft, account, rulesVersions) ? null : { kind: "stale_rules" };
}

function resolve(
  draft: Draft,
  { agentId, transactionId }: { readonly agentId: string; readonly transactionId: string },
  resolution: (payment: StoredPayment, account: Account) => StoredPayment,
): LedgerReply {
  const { now } = draft;
  const account = draft.account(agentId);
  const payment = account?.open.get(transactionId)?.payment;
  if (account === undefined || payment === undefined) return { kind: "not_open" };
  if (payment.phase !== "held" || payment.approval === null)
    return { kind: "payment", changed: false, payment };
  const isLate = now >= payment.approval.expiresAt;
  const resolved = isLate ? expire(payment, now) : resolution(payment, account);
  draft.change(account, resolved);
  const permit = resolved.phase === "sending" ? { permit: account.revision } : {};
  return { kind: "payment", changed: !isLate, payment: resolved, ...permit };
}

/** Approves a payment if restrictions and limits still hold without its own hold; otherwise fails it. */
function approved(
  { bounds, isSilent, ledger, now }: Draft,
  account: Account,
  payment: StoredPayment,
  { by, forbidden, proof }: CommandOf<"approve">,
): StoredPayment {
  const { amountMc } = payment.request;
  const windowsMc = countedInEach(payment, bounds);
  const own = { amountMc, day: payment.day, countedAt: payment.countedAt, windowsMc };
  const denial: Denial | null =
    statusDenial(account) ??
    (forbidden === undefined ? null : restrictionDenial(forbidden)) ??
    checkLimits(account.policy, account.usage, amountMc, now, own, bounds) ??
    checkCaps(ledger, account, amountMc, bounds, own);
  const resolution = { resolvedAt: now, resolvedBy: by, proof, policyVersion: account.policyVersion };
  if (denial !== null) {
    const approval = withApproval(payment, { ...resolution, resolution: "failed" });
    return next(payment, { status: "failed", phase: "done", denial, deniedAt: now, approval });
  }
  const after = next(payment, {
    phase: "sending",
    // An amount that is spent today counts today, even if it was held yesterday.
    day: dayCounted(account.usage, now),
    windowAt: Math.max(now, bounds.at),
    approval: withApproval(payment, { ...resolution, resolution: "executing" }),
  });
  if (isSilent) return after;
  const uses = limitUses(ledger, account, { before: payment, after, bounds, now });
  return withWarnings(after, warningsOf(uses, now));
}

/** Ends all payments of a closed account that wait for a person or for their network. Returns their ids. */
export function endAllWaiting(draft: Draft, account: Account): string[] {
  const waiting = [...account.open.values()]
    .map(({ payment }) => payment)
    .filter((payment) => payment.phase === "held" || isArmed(payment));
  for (const payment of waiting) {
    const isHeld = payment.phase === "held";
    const ended = isHeld ? endByArchive(payment, draft.now) : disarmed(payment, AGENT_ARCHIVED, draft.now);
    draft.change(account, ended);
  }
  return waiting.map(({ request }) => request.transactionId);
}
