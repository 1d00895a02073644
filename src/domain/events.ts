import type { AgentLifecycle } from "./agent/state.ts";
import { type Approval, HELD_REVISION, type Payment } from "./ledger/payment.ts";
import { utcDate } from "./ledger/usage.ts";

/** The events that the service publishes. */
export const EVENT_TYPES = [
  "transaction.completed",
  "transaction.denied",
  "approval.requested",
  "approval.completed",
  "agent.created",
  "agent.paused",
  "agent.resumed",
  "agent.archived",
  "funding.deposited",
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
  readonly type: Extract<EventType, `transaction.${string}` | `approval.${string}`>;
  readonly payment: Payment;
}

export const createdEventId = (agentId: string): string => `evt_${agentId}_created`;

/** Revisions of an agent, and those of its account, only rise, so an id is never given twice. */
export const lifecycleEventId = (agentId: string, of: "agent" | "account", revision: number): string =>
  `evt_${agentId}_${of}_${revision}`;

/** Ends of a payment that neither policy nor a person has decided. */
const NOT_DENIED: readonly string[] = ["CANCELLED_BY_AGENT", "AGENT_ARCHIVED"];

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
  /** `at`: null for what may have become of it just now. */
  const fire = (type: PaymentEvent["type"], at: number | null, as: Payment = payment): void => {
    if (retainedSince !== null && at !== null && at < retainedSince) return;
    fired.push({ id: `evt_${request.transactionId}_${type}`, type, payment: as });
  };
  if (approval !== null) fire("approval.requested", createdAt, asRequested(payment));
  if (approval !== null && approval.resolvedBy !== null) fire("approval.completed", approval.resolvedAt);
  if (status === "approved") fire("transaction.completed", null);
  if (status === "reversed") fire("transaction.completed", createdAt, asSettled(payment));
  if (status === "denied" && !NOT_DENIED.includes(denial?.code ?? "")) fire("transaction.denied", deniedAt);
  return fired;
}

/** A payment as it was before it was reversed. */
const asSettled = (payment: Payment): Payment =>
  payment.status === "reversed" ? { ...payment, status: "approved", deniedAt: null } : payment;

function undecided({ policyVersion: _whenApproved, proof: _decision, ...approval }: Approval): Approval {
  return { ...approval, resolution: null, resolvedAt: null, resolvedBy: null, feedback: null };
}

/** A held payment as it was while undecided. */
function asRequested(payment: Payment): Payment {
  const { approval } = payment;
  return {
    ...payment,
    status: "pending",
    phase: "held",
    // An approval on a later day has moved it there.
    day: utcDate(payment.createdAt),
    denial: null,
    deniedAt: null,
    approval: approval === null ? null : undecided(approval),
    onChainTxHash: null,
    chainCaip2: null,
    revision: HELD_REVISION,
  };
}
