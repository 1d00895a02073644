import type { AgentLifecycle, AgentProfile } from "./agent/state.ts";
import { bookingSteps } from "./ledger/booking-steps.ts";
import type { Breach, NetworkAnswer } from "./ledger/books.ts";
import { type Approval, HELD_REVISION, type Payment } from "./ledger/payment.ts";
import type { Warning } from "./ledger/thresholds.ts";
import { utcDate } from "./ledger/usage.ts";

export const EVENT_TYPES = [
  "transaction.completed",
  "transaction.denied",
  "transaction.failed",
  "transaction.refunded",
  "transaction.reversed",
  "transaction.disputed",
  "transaction.limit_breached",
  "authorization.approved",
  "authorization.declined",
  "approval.requested",
  "approval.completed",
  "approval.expired",
  "approval.cancelled",
  "agent.created",
  "agent.paused",
  "agent.resumed",
  "agent.archived",
  "funding.deposited",
  "wallet.funded",
  "budget.threshold_reached",
  "billing.payment_failed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Events of an agent's lifecycle, with the resulting state. */
export const LIFECYCLE_EVENTS = {
  "agent.paused": "paused",
  "agent.resumed": "active",
  "agent.archived": "archived",
} as const satisfies Partial<Record<EventType, AgentLifecycle>>;
export type LifecycleEventType = keyof typeof LIFECYCLE_EVENTS;

/** An event of an agent's lifecycle, kept by its actor until known to be in the journal. */
export interface LifecycleEvent {
  /** Stable across republications. */
  readonly id: string;
  readonly type: LifecycleEventType;
  readonly at: number;
  /** Revision of the actor at the event. */
  readonly revision: number;
}

/** An event of a payment, with the payment as of the event. */
export interface PaymentEvent {
  readonly id: string;
  readonly type: Extract<EventType, `${"transaction" | "approval" | "authorization"}.${string}`>;
  readonly payment: Payment;
  /** Only of an authorization. */
  readonly answer?: NetworkAnswer;
}

/** An event for a limit that a payment has brought to a threshold. Contains nothing of the payment. */
export interface WarningEvent {
  readonly id: string;
  readonly type: "budget.threshold_reached";
  readonly warning: Warning;
}

/** Returns the warnings' events, with ids unique per window or, without windows, per amount of the limit. */
export function warningEvents(
  { agentId, projectId, teamId }: AgentProfile,
  { warnings = [] }: Payment,
): WarningEvent[] {
  const ids = { agent: agentId, team: teamId, project: projectId };
  return warnings.map((warning) => {
    const { level, limit, limitCents, percent, startedAt } = warning;
    const window = startedAt === null ? "once" : String(startedAt);
    const id = `evt_${ids[level]}_${limit}_${window}_${String(limitCents)}_${String(percent)}`;
    return { id, type: "budget.threshold_reached", warning };
  });
}

export const createdEventId = (agentId: string): string => `evt_${agentId}_created`;

/** Returns an event's id. Revisions of an agent and of its account only rise, so an id is never reused. */
export const lifecycleEventId = (agentId: string, of: "agent" | "account", revision: number): string =>
  `evt_${agentId}_${of}_${revision}`;

/** Denials of held payments that neither policy nor a person decided. */
const CANCELLED: readonly string[] = ["CANCELLED_BY_AGENT", "AGENT_ARCHIVED"];

/**
 * Returns every event of a payment so far. Depends only on the payment: whichever process publishes it, at any
 * revision, writes the same events under the same ids, and none is lost if a revision was never written.
 *
 * `retainedSince`, in epoch milliseconds: earlier events were published at their time and may have been removed since.
 * Publishing them again would deliver them again.
 */
export function paymentEvents(payment: Payment, retainedSince: number | null = null): PaymentEvent[] {
  const { approval, createdAt, denial, deniedAt, request, status } = payment;
  const fired: PaymentEvent[] = [];
  const ids = new Set<string>();
  /** Fires an event once per gross sum or network request; null: once at all. */
  const fire: Fire = (type, at, as = payment, of = null) => {
    const isAnswer = of !== null && typeof of === "object";
    const suffix = isAnswer
      ? `_${of.authorization}_${String(of.position)}`
      : of === null
        ? ""
        : `_${String(of)}`;
    const id = `evt_${request.transactionId}_${type}${suffix}`;
    if (ids.has(id)) return;
    ids.add(id);
    if (retainedSince !== null && at !== null && at < retainedSince) return;
    fired.push({ id, type, payment: as, ...(isAnswer ? { answer: of } : {}) });
  };
  const isCancelled = CANCELLED.includes(denial?.code ?? "");
  if (approval !== null) {
    const { resolution, resolvedAt, resolvedBy } = approval;
    fire("approval.requested", createdAt, asRequested(payment));
    if (resolvedBy !== null) fire("approval.completed", resolvedAt);
    else if (resolution === "expired") fire("approval.expired", deniedAt);
    else if (isCancelled) fire("approval.cancelled", deniedAt);
  }
  for (const answer of payment.books?.answers ?? [])
    fire(`authorization.${answer.refusal === null ? "approved" : "declined"}`, answer.at, payment, answer);
  fireBooked(payment, fire);
  if (status === "failed") fire("transaction.failed", deniedAt);
  if (status === "denied" && !isCancelled) fire("transaction.denied", deniedAt);
  return fired;
}

type Fire = (
  type: PaymentEvent["type"],
  at: number | null,
  as?: Payment,
  of?: number | NetworkAnswer | null,
) => void;

/** Fires the events of bookings, each with the payment as of the booking. */
function fireBooked(payment: Payment, fire: Fire): void {
  for (const { as, before, booking } of bookingSteps(payment)) {
    const { at, breaches, creditedMc, disputedMc } = booking;
    if (as.status === "approved" || as.status === "reversed") fire("transaction.completed", at, as);
    if (breaches !== undefined) fire("transaction.limit_breached", at, as, exceededMc(breaches));
    if (creditedMc > before.creditedMc) fire("transaction.refunded", at, as, creditedMc);
    if (disputedMc > before.disputedMc) fire("transaction.disputed", at, as, disputedMc);
    if (as.status === "reversed") fire("transaction.reversed", at, as);
    if (as.status === "failed") fire("transaction.failed", at, as);
  }
}

const exceededMc = (breaches: readonly Breach[]): number =>
  breaches.reduce((sum, { overMc }) => sum + overMc, 0);

function undecided({ policyVersion: _whenApproved, proof: _decision, ...approval }: Approval): Approval {
  return { ...approval, resolution: null, resolvedAt: null, resolvedBy: null, feedback: null };
}

/** Returns a held payment as it was while undecided. */
function asRequested(payment: Payment): Payment {
  const { windowAt: _whenApproved, ...made } = payment;
  const { approval } = payment;
  return {
    ...made,
    status: "pending",
    phase: "held",
    // An approval on a later day has moved it there.
    day: utcDate(payment.createdAt),
    denial: null,
    deniedAt: null,
    approval: approval === null ? null : undecided(approval),
    onChainTxHash: null,
    chainCaip2: null,
    books: null,
    revision: HELD_REVISION,
  };
}
