import { usedCents } from "../money.ts";
import { type BookingStep, bookingSteps, type Totals } from "../ledger/booking-steps.ts";
import { type NetworkEntry, shownBreach } from "../ledger/books.ts";
import type { Denial, DenialCode } from "../ledger/policy.ts";
import { type Approval, isWithheld, type Payment } from "../ledger/payment.ts";
import { RAIL_FAILURE_CODES } from "../ledger/rail-failures.ts";
import type { AgentProfile } from "../agent/state.ts";
import { auditValue } from "./canonical.ts";
import type { AuditActor, AuditRecord } from "./entry.ts";

/** Codes by which a rail refuses. They are not policy decisions, and are in the transaction's record. */
const BY_THE_RAIL: ReadonlySet<DenialCode> = new Set<DenialCode>(RAIL_FAILURE_CODES);

/**
 * Returns entries for everything decided on a payment so far: by policy, by the person who resolved the hold, and by
 * policy again after that; and for everything that its network did other than charging it as decided. Depends only on
 * the payment, at any later revision, so that the next publisher writes what an earlier one missed, under the same
 * keys.
 */
export function paymentDecisions(profile: AgentProfile, payment: Payment): AuditRecord[] {
  const { approval } = payment;
  return [
    decided(profile, payment),
    ...(approval !== null && approval.resolvedAt !== null
      ? [resolved(profile, payment, approval, approval.resolvedAt)]
      : []),
    ...refusedLater(profile, payment),
    ...bookingSteps(payment)
      .filter((step) => !isAsDecided(step))
      .map((step) => booked(profile, payment, step)),
  ];
}

interface DecisionFacts {
  readonly what: "decided" | "resolved" | "refused" | `booked/${string}`;
  readonly action: "decidePayment" | "resolvePayment" | "refusePayment" | "bookPayment";
  readonly at: number;
  readonly actor: AuditActor;
  readonly code: DenialCode | null;
  readonly decision: Readonly<Record<string, unknown>>;
}

const recordOf = (
  { organizationId }: AgentProfile,
  { request }: Payment,
  decision: DecisionFacts,
): AuditRecord => ({
  organizationId,
  entryKey: `${request.transactionId}/${decision.what}`,
  at: decision.at,
  action: decision.action,
  actor: decision.actor,
  resource: { id: request.transactionId, type: "transaction" },
  from: null,
  result: { code: decision.code, status: null },
  before: null,
  after: null,
  decision: auditValue(decision.decision),
});

/** Returns the limits of a decision; null if they are no longer known. */
const limitsOf = ({ limits }: Payment) =>
  limits?.map(([level, limit, value, used]) => ({ level, limit, used, value })) ?? null;

const agentOf = ({ agentId, name }: AgentProfile): AuditActor => ({ id: agentId, name, type: "agent" });

function decided(profile: AgentProfile, payment: Payment): AuditRecord {
  const { approval, createdAt, policyVersion, request, status, wouldHaveFlagged } = payment;
  const isDeniedAtOnce = approval === null && status === "denied" && !isWithheld(payment);
  const denial = isDeniedAtOnce ? payment.denial : null;
  const outcome = approval === null ? (denial === null ? "approved" : "denied") : "held";
  const { amountMc, currency, merchantCategory, rail, recipient, rulesVersions } = request;
  return recordOf(profile, payment, {
    what: "decided",
    action: "decidePayment",
    at: createdAt,
    actor: agentOf(profile),
    code: denial?.code ?? null,
    // Fields are in canonical order, since there is one entry per payment and sorting costs time.
    decision: {
      agentId: profile.agentId,
      ...(approval === null ? {} : { approvalId: approval.id, budgetContext: approval.budgetContext }),
      code: denial?.code ?? null,
      details: detailsOf(denial),
      flaggedByRuleTypes: approval?.flaggedByRuleTypes ?? [],
      inputs: { amountCents: usedCents(amountMc), currency, merchantCategory, rail, recipient },
      limits: limitsOf(payment),
      outcome,
      policyVersion: policyVersion ?? null,
      reason: denial?.reason ?? null,
      ...(rulesVersions === undefined ? {} : { rulesVersions }),
      ...(wouldHaveFlagged === undefined ? {} : { wouldHaveFlagged }),
    },
  });
}

function resolved(profile: AgentProfile, payment: Payment, approval: Approval, at: number): AuditRecord {
  const resolution = resolutionOf(payment, approval);
  return recordOf(profile, payment, {
    what: "resolved",
    action: "resolvePayment",
    at,
    actor: resolverOf(profile, payment, approval),
    code: resolution === "approved" ? null : (payment.denial?.code ?? null),
    decision: {
      agentId: profile.agentId,
      policyVersion: approval.policyVersion ?? null,
      approvalId: approval.id,
      outcome: resolution,
      feedback: approval.feedback,
    },
  });
}

/** Returns the resolution by a person, the agent or time, regardless of a later refusal by a rail or limit. */
function resolutionOf(
  { denial }: Payment,
  { isForged, resolution }: Approval,
): "approved" | "denied" | "expired" | "cancelled" {
  if (isForged === true) return "denied";
  if (resolution === "expired") return "expired";
  if (resolution !== "denied") return "approved";
  return denial?.code === "CANCELLED_BY_AGENT" ? "cancelled" : "denied";
}

function resolverOf(profile: AgentProfile, { denial }: Payment, approval: Approval): AuditActor {
  const { isForged, resolvedBy } = approval;
  if (isForged === true) return { type: "system", id: "verification" };
  if (resolvedBy !== null) return { type: "user", id: resolvedBy.userId, name: resolvedBy.name };
  return enderOf(profile, denial, "expiry");
}

/** Returns the agent that cancelled a payment, or the part of the service that ended it. */
function enderOf(profile: AgentProfile, denial: Denial | null, otherwise: string): AuditActor {
  if (denial?.code === "CANCELLED_BY_AGENT") return agentOf(profile);
  return { type: "system", id: denial?.code === "AGENT_ARCHIVED" ? "archive" : otherwise };
}

/** Returns entries for payments approved and then refused by a limit, or released before they were charged. */
function refusedLater(profile: AgentProfile, payment: Payment): AuditRecord[] {
  const { approval, deniedAt, denial, policyVersion } = payment;
  if (denial === null || deniedAt === null) return [];
  if (approval?.resolution !== "failed" && !isWithheld(payment)) return [];
  if (BY_THE_RAIL.has(denial.code)) return [];
  const decision = {
    what: "refused",
    action: "refusePayment",
    at: deniedAt,
    actor: enderOf(profile, denial, "policy"),
    code: denial.code,
    decision: {
      agentId: profile.agentId,
      policyVersion: approval === null ? policyVersion : (approval.policyVersion ?? null),
      ...(approval === null ? {} : { approvalId: approval.id }),
      outcome: "denied",
      code: denial.code,
      reason: denial.reason,
      details: detailsOf(denial),
    },
  } as const;
  return [recordOf(profile, payment, decision)];
}

/** Whether the network has authorized or charged exactly the decided amount, so that the decision's entry suffices. */
function isAsDecided({ before, booking }: BookingStep): boolean {
  const { breaches, capturedMc, creditedMc, disputedMc, heldMc, recalledMc } = booking;
  if (breaches !== undefined || creditedMc + disputedMc + recalledMc > 0) return false;
  return before.capturedMc === 0 && heldMc + capturedMc === before.heldMc;
}

/** Returns the entry of a booking. Gross sums only rise, so they make its key unique. */
function booked(profile: AgentProfile, payment: Payment, { as, before, booking }: BookingStep): AuditRecord {
  const { at, capturedMc, creditedMc, disputedMc, heldMc, recalledMc } = booking;
  const breaches = booking.breaches?.map(shownBreach);
  return recordOf(profile, payment, {
    what: `booked/${[capturedMc, creditedMc, recalledMc, disputedMc, heldMc].join("/")}`,
    action: "bookPayment",
    at,
    actor: { type: "system", id: "network" },
    code: null,
    decision: {
      agentId: profile.agentId,
      breach: breaches ?? null,
      capturedCents: usedCents(capturedMc),
      creditedCents: usedCents(creditedMc),
      disputedCents: usedCents(disputedMc),
      effect: effectOf(before, booking),
      heldCents: usedCents(heldMc),
      recalledCents: usedCents(recalledMc),
      status: as.status,
    },
  });
}

/** Returns the effect of a booking; the gravest of several. */
function effectOf(before: Totals, now: Totals): NetworkEntry {
  if (now.disputedMc > before.disputedMc) return "disputed";
  if (now.recalledMc > before.recalledMc) return "refund_reversed";
  if (now.creditedMc > before.creditedMc) return "refunded";
  if (now.capturedMc > before.capturedMc) return "captured";
  return now.heldMc > before.heldMc ? "authorized" : "released";
}

function detailsOf(denial: Denial | null) {
  if (denial === null || denial.details === null) return null;
  const { resetsAt } = denial.details;
  return { ...denial.details, resetsAt: resetsAt === null ? null : new Date(resetsAt).toISOString() };
}
