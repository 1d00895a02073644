import type { Payment } from "../../../src/domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../../../src/domain/agent/state.ts";
import type { RecordedCap } from "../../../src/domain/ledger/commands.ts";
import type { AccountSummary } from "../../../src/domain/ledger/state.ts";

/** Kinds of differences, by which source is right. */
export type DifferenceKind =
  /** A record without an actor, or an actor that does not answer. */
  | "actor_lost"
  | "actor_silent"
  /** A project without a ledger, or a ledger that does not answer. */
  | "ledger_lost"
  | "ledger_silent"
  /** An agent that is not archived and has no account in its project's ledger. */
  | "account_lost"
  /** The ledger and the agent's actor differ in the agent's name, key or status. */
  | "account_differs"
  | "agent_record_lost"
  | "agent_record_differs"
  /** The sum of the agent's payments differs from what its account has spent and holds. */
  | "payments_sum_differs"
  /** The sum of the accounts of a team or project differs from the usage under its cap. */
  | "totals_differ"
  /** A cap or a version of approval rules that differs from the container's record. */
  | "container_record_differs"
  /** A record that decides access and was changed by something other than the service. */
  | "access_record_differs"
  /** A payment that the ledger decided and that has no record. */
  | "payment_record_lost"
  /** A record of a payment that the ledger did not decide, or a duplicate of a number. */
  | "payment_record_unknown"
  | "payment_record_differs"
  | "approval_record_differs"
  | "card_ledger_differs"
  /** A difference between a card issuer's charges and the payments on its cards. */
  | "card_issuer_differs"
  | "chain_differs"
  /** A difference between the transfers out of an agent's pocket and its purchases. */
  | "pocket_differs";

/** Records that a repair may write, from the actors' state. */
export type Repair =
  | {
      readonly kind: "agent_record";
      readonly agentId: string;
      /** Null if not requested or not available. */
      readonly agent: AgentSummary | null;
      readonly account: AccountSummary | null;
    }
  | { readonly kind: "cap"; readonly projectId: string; readonly recorded: RecordedCap }
  | { readonly kind: "payment_records"; readonly profile: AgentProfile; readonly payment: Payment };

export interface Difference {
  readonly kind: DifferenceKind;
  readonly of:
    | "agent"
    | "payment"
    | "approval"
    | "project"
    | "team"
    | "person"
    | "session"
    | "organization key"
    | "invite"
    | "webhook endpoint";
  readonly id: string;
  /** Agent whose sources are read again for the second look. */
  readonly agentId: string | null;
  readonly projectId: string | null;
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  readonly advice: string;
  /** Null if records cannot settle the difference, or if the actors themselves are in question. */
  readonly repair: Repair | null;
  /** Whether work in flight can temporarily look the same. */
  readonly mayBeInFlight: boolean;
  /**
   * Part of the difference that stays the same while the agent continues to work. Default: the expected and the found
   * value.
   */
  readonly steady?: string;
}

/** Returns a key that tells whether a difference persists or a new one about the same subject replaced it. */
export const signatureOf = ({ expected, found, id, kind, steady, what }: Difference): string =>
  JSON.stringify([kind, id, what, steady ?? [expected, found]]);

export const ADVICE = {
  repair: "`--repair` corrects it from the actor.",
  lostAgent:
    "The record can't be rebuilt from actor and ledger, which lack its key and wallet: restore it from a backup.",
  lostActor:
    "The actor's history is lost: the agent's money is in the ledger, but its keys can't be changed (docs/recovery.md).",
  silentActor: "Check its workflow in the Temporal UI and that a worker runs, then run this again.",
  lostLedger: "No agent of the project can pay until it is back: `npm run admin -- restore-ledger`.",
  silentLedger: "Check the ledger's workflow in the Temporal UI and that a worker runs, then run this again.",
  lostAccount:
    "The agent can't pay. Keep the ledger's history (Temporal UI) and report it; archive the agent and create another.",
  account:
    "The agent's actor updates the ledger by itself; if the difference stays, report it with both histories (Temporal UI).",
  lostPayment:
    "Restore the record from a backup; the processor's ledger and the journal of events say what it was.",
  unknownPayment:
    "No ledger decided it, so nothing was paid for it: remove the record, and find out who wrote it.",
  proof:
    "It was changed by hand: restore the record from a backup. Until then revoke the agent's key and find out who wrote it.",
  access:
    "It was changed by hand and is refused. Restore it from a backup, or make it anew: invite the person, mint a key, set the rules. Find out who wrote it.",
  closedPayment:
    "The ledger no longer holds this payment: correct the record from the processor's ledger and the journal of events.",
  sum: "One of the agent's records was changed or lost: compare them with the processor's ledger.",
  totals:
    "A record of an archived agent was changed or lost, or the ledger miscounts: compare the records with the processor's ledger.",
  ahead:
    "The record is newer than its actor: it was written by hand, or the engine was restored from an older backup.",
  rules:
    "The record was written by hand or is from an older backup: replace the approval rules until their version is higher than this one.",
} as const;
