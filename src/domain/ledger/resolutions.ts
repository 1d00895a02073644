import type { Approval, StoredPayment, Resolver } from "./payment.ts";
import { next } from "./payment.ts";
import type { Denial } from "./policy.ts";

export const AGENT_ARCHIVED: Denial = {
  code: "AGENT_ARCHIVED",
  reason: "The agent is archived.",
  details: null,
};

interface PersonsDenial {
  readonly by: Resolver;
  readonly feedback: string;
  readonly proof: string;
}

export function deny(
  payment: StoredPayment,
  { by, feedback, proof }: PersonsDenial,
  now: number,
): StoredPayment {
  const denial: Denial = { code: "APPROVAL_DENIED", reason: "A person denied the payment.", details: null };
  const approval = { resolvedBy: by, feedback, proof };
  return end(payment, "denied", denial, "denied", now, approval);
}

export const CANCELLED_BY_AGENT: Denial = {
  code: "CANCELLED_BY_AGENT",
  reason: "The agent cancelled the payment.",
  details: null,
};

export const cancel = (payment: StoredPayment, now: number): StoredPayment =>
  end(payment, "denied", CANCELLED_BY_AGENT, "denied", now);

export function expire(payment: StoredPayment, now: number): StoredPayment {
  const denial: Denial = {
    code: "APPROVAL_EXPIRED",
    reason: "No one decided within the approval window.",
    details: null,
  };
  return end(payment, "expired", denial, "expired", now);
}

/** Ends a held payment without sending it, which releases its reservation. */
function end(
  payment: StoredPayment,
  status: "denied" | "expired",
  denial: Denial,
  resolution: "denied" | "expired",
  now: number,
  approval: Partial<Approval> = {},
): StoredPayment {
  return next(payment, {
    status,
    phase: "done",
    denial,
    deniedAt: now,
    approval: withApproval(payment, { ...approval, resolution, resolvedAt: now }),
  });
}

export const withApproval = (payment: StoredPayment, change: Partial<Approval>): Approval | null =>
  payment.approval === null ? null : { ...payment.approval, ...change };

/** Ends a held payment when its agent is archived: denied, or expired if its approval window had closed before. */
export function endByArchive(payment: StoredPayment, now: number): StoredPayment {
  const isLate = payment.approval !== null && now >= payment.approval.expiresAt;
  return isLate ? expire(payment, now) : end(payment, "denied", AGENT_ARCHIVED, "denied", now);
}
