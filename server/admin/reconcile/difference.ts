import type { Payment } from "../../../src/domain/agent/payment.ts";
import type { AgentProfile, AgentSummary } from "../../../src/domain/agent/state.ts";

/** What books can disagree in, by who is right about it. */
export type DifferenceKind =
  /** A record without an actor, or an actor that gives no answer. */
  | "actor_lost"
  | "actor_silent"
  | "agent_record_lost"
  | "agent_record_differs"
  /** What the agent's payments add up to is not what its actor has spent. */
  | "payments_sum_differs"
  /** A payment that its actor has decided, and of which there is no record. */
  | "payment_record_lost"
  /** A record that its actor has never decided, or another of the same number. */
  | "payment_record_unknown"
  | "payment_record_differs"
  | "approval_record_differs"
  | "budget_differs"
  /** The project had caps, and the actor that knows of them is gone. */
  | "budget_lost"
  /** An agent that spends under a cap, and of which its budget does not know. */
  | "agent_not_under_cap"
  | "card_ledger_differs"
  | "chain_differs";

/** What a repair may write: projections, from what the actor has. */
export type Repair =
  | { readonly kind: "agent_record"; readonly agentId: string; readonly summary: AgentSummary }
  | { readonly kind: "payment_records"; readonly profile: AgentProfile; readonly payment: Payment };

/** One thing that does not agree. */
export interface Difference {
  readonly kind: DifferenceKind;
  readonly of: "agent" | "payment" | "approval" | "project";
  readonly id: string;
  /** Whose books have to be read again to see whether it is still so. */
  readonly agentId: string | null;
  readonly projectId: string | null;
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  /** What an operator can do. */
  readonly advice: string;
  /** Null where projections can't tell, or the actors themselves are in question. */
  readonly repair: Repair | null;
  /** Work under way can look the same for a while. */
  readonly mayBeInFlight: boolean;
  /** What stays the same of a difference while its agent goes on working; by default what is expected and found. */
  readonly steady?: string;
}

/** Tells a difference that is still there from another one about the same thing. */
export const signatureOf = ({ expected, found, id, kind, steady, what }: Difference): string =>
  JSON.stringify([kind, id, what, steady ?? [expected, found]]);

export const ADVICE = {
  repair: "`--repair` writes it as the actor has it.",
  lostAgent:
    "The record can't be made anew from the actor (its key and wallet are not there): restore it from a backup.",
  lostActor: "The actor's history is gone: restore the engine from a backup. Until then the agent can't pay.",
  silentActor: "Look at its workflow in the Temporal UI; does a worker run? Then run this again.",
  lostPayment:
    "Restore the record from a backup; the processor's ledger and the journal of events say what it was.",
  unknownPayment: "No actor decided it, so nothing was paid for it: remove the record, and ask who wrote it.",
  closedPayment:
    "Its actor has let go of it: correct the record by the processor's ledger and the journal of events.",
  sum: "One of the agent's records was changed or lost: compare them with the processor's ledger.",
  ahead:
    "The record is newer than its actor: it was written by hand, or the engine was restored from an older backup.",
  budget:
    "Only the actors know: keep both histories (Temporal UI) and report it. The agent's next payment reports its totals anew.",
  lostBudget:
    "Its caps are not known any more, so its agents can't pay: restore the engine from a backup, or archive the project and begin another.",
  ledger:
    "Compare the payment, its actor's history and the processor's entry; the ledger is what was really paid.",
  chain: "Compare the payment, `chain_transactions` and the chain; the chain is what was really paid.",
} as const;
