import { type Command, type Decided, none, one } from "./decided.ts";
import { asksForCaps } from "./caps.ts";
import type { Approval, Payment } from "./payment.ts";
import { AGENT_PAUSED, next } from "./payment.ts";
import type { Denial } from "./policy.ts";
import { checkLimits } from "./policy.ts";
import type { AgentState } from "./state.ts";
import { dayCounted } from "./usage.ts";

/** What becomes of payments on hold. */

/** Why an agent in this state of its life pays nothing; null: it may. */
export function lifecycleDenial(state: AgentState): Denial | null {
  if (state.lifecycle === "active") return null;
  return state.lifecycle === "paused" ? AGENT_PAUSED : AGENT_ARCHIVED;
}

const AGENT_ARCHIVED: Denial = {
  code: "AGENT_ARCHIVED",
  reason: "The agent is archived.",
  details: null,
};

/** Runs a resolution of a payment on hold. One whose window has closed expires instead, whoever comes. */
export function decideHeld(
  state: AgentState,
  transactionId: string,
  now: number,
  resolution: (payment: Payment) => Payment,
): Decided {
  const open = state.open[transactionId];
  if (open === undefined) return none({ kind: "not_open" });
  if (open.payment.phase !== "held" || open.payment.approval === null) {
    return none({ kind: "payment", changed: false, payment: open.payment });
  }
  const payment = waiting(open.payment);
  const late = now >= open.payment.approval.expiresAt;
  const resolved = late ? expire(payment, now) : resolution(payment);
  return one(
    { type: "payment_changed", payment: resolved },
    { kind: "payment", changed: !late, payment: resolved },
  );
}

/**
 * Who resolves a payment on hold has seen it wait, so the budget has taken it, also where the actor has not heard so yet.
 * What ends it without that reserves nothing either way; the revision keeps clear of what the budget's answer makes.
 */
const waiting = (payment: Payment): Payment =>
  payment.ask === "reserve" ? next(payment, { ask: null }) : payment;

export function approve(
  state: AgentState,
  payment: Payment,
  command: Command<"approve">,
  now: number,
): Payment {
  const { amountCents } = payment.request;
  const own = { amountCents, day: payment.day, createdAt: payment.createdAt };
  const denial = lifecycleDenial(state) ?? checkLimits(state.policy, state.usage, amountCents, now, own);
  const { by, proof } = command;
  const resolved = { resolvedAt: now, resolvedBy: by, proof, policyVersion: state.policyVersion };
  if (denial !== null) {
    return next(payment, {
      status: "failed",
      phase: "done",
      denial,
      deniedAt: now,
      approval: withApproval(payment, { ...resolved, resolution: "failed" }),
    });
  }
  return next(payment, {
    phase: "sending",
    ...(asksForCaps(state) ? { ask: "recheck" as const } : {}),
    // What is spent today counts today, also when it was put on hold yesterday.
    day: dayCounted(state.usage, now),
    approval: withApproval(payment, { ...resolved, resolution: "executing" }),
  });
}

export function deny(payment: Payment, command: Command<"deny">, now: number): Payment {
  const denial: Denial = { code: "APPROVAL_DENIED", reason: "A person denied the payment.", details: null };
  const approval = { resolvedBy: command.by, feedback: command.feedback, proof: command.proof };
  return end(payment, "denied", denial, "denied", now, approval);
}

export function cancel(payment: Payment, now: number): Payment {
  const denial: Denial = {
    code: "CANCELLED_BY_AGENT",
    reason: "The agent cancelled the payment.",
    details: null,
  };
  return end(payment, "denied", denial, "denied", now);
}

export function expire(payment: Payment, now: number): Payment {
  const denial: Denial = {
    code: "APPROVAL_EXPIRED",
    reason: "No one decided within the approval window.",
    details: null,
  };
  return end(payment, "expired", denial, "expired", now);
}

/** Ends what was on hold without a payment; its reservation is released. */
export function end(
  payment: Payment,
  status: "denied" | "expired",
  denial: Denial,
  resolution: "denied" | "expired",
  now: number,
  approval: Partial<Approval> = {},
): Payment {
  return next(payment, {
    status,
    phase: "done",
    denial,
    deniedAt: now,
    approval: withApproval(payment, { ...approval, resolution, resolvedAt: now }),
  });
}

const withApproval = (payment: Payment, change: Partial<Approval>): Approval | null =>
  payment.approval === null ? null : { ...payment.approval, ...change };

/** Whether it waits for a person. What the budget may still refuse does not: it may turn out never to have been held. */
export const isOnHold = ({ ask, phase }: Payment): boolean => phase === "held" && ask !== "reserve";

/** What archiving makes of a payment on hold: denied by nobody, or expired where its window had closed before. */
export function endByArchive(payment: Payment, now: number): Payment {
  const late = payment.approval !== null && now >= payment.approval.expiresAt;
  return late ? expire(payment, now) : end(payment, "denied", AGENT_ARCHIVED, "denied", now);
}
