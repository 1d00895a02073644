import type { AgentLifecycle, AgentProfile } from "./agent/state.ts";
import { bookingSteps } from "./ledger/booking-steps.ts";
import type { Breach, NetworkAnswer } from "./ledger/books.ts";
import { type Approval, HELD_REVISION, type Payment } from "./ledger/payment.ts";
import type { Warning } from "./ledger/thresholds.ts";
import { utcDate } from "./ledger/usage.ts";

/** The events that the service publishes. */
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

/** Events of an agent's own life, and the state that each leaves it in. */
export const LIFECYCLE_EVENTS = {
  "agent.paused": "paused",
  "agent.resumed": "active",
  "agent.archived": "archived",
} as const satisfies Partial<Record<EventType, AgentLifecycle>>;
export type LifecycleEventType = keyof typeof LIFECYCLE_EVENTS;

/** Something that became of an agent itself. Kept by its actor until it is known to be in the journal. */
export interface LifecycleEvent {
  /** Stable across republications. */
  readonly id: string;
  readonly type: LifecycleEventType;
  readonly at: number;
  /** The actor's revision that brought it. */
  readonly revision: number;
}

/** Something that became of a payment, and the payment as it was then. */
export interface PaymentEvent {
  readonly id: string;
  readonly type: Extract<EventType, `${"transaction" | "approval" | "authorization"}.${string}`>;
  readonly payment: Payment;
  /** Only of an authorization. */
  readonly answer?: NetworkAnswer;
}

/** A payment has brought a limit to a threshold. The event is about the limit, and has nothing of the payment. */
export interface WarningEvent {
  readonly id: string;
  readonly type: "budget.threshold_reached";
  readonly warning: Warning;
}

/** A warning is told once in a window; of a limit without windows once, and again where its amount has changed. */
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

/** Revisions of an agent, and those of its account, only rise, so an id is never given twice. */
export const lifecycleEventId = (agentId: string, of: "agent" | "account", revision: number): string =>
  `evt_${agentId}_${of}_${revision}`;

/** Ends of a payment on hold that neither policy nor a person has decided: nobody may decide it any more. */
const CANCELLED: readonly string[] = ["CANCELLED_BY_AGENT", "AGENT_ARCHIVED"];

/**
 * Everything that has fired for a payment by now. It follows from the payment alone: whichever process publishes it, at whichever of its
 * revisions, writes the same events under the same ids, and none is lost where a revision was never written.
 *
 * `retainedSince`, epoch milliseconds: events that fired before were published then, and may have been removed since: published
 * again, they would be delivered again.
 */
export function paymentEvents(payment: Payment, retainedSince: number | null = null): PaymentEvent[] {
  const { approval, createdAt, denial, deniedAt, request, status } = payment;
  const fired: PaymentEvent[] = [];
  const ids = new Set<string>();
  /** Fires once for each gross sum, or each request of the network; null: once at all. */
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

/** Fires what bookings have brought, each with the payment as it was then. */
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

/** A held payment as it was while undecided. */
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
