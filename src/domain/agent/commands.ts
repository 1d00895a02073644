import type { AskKind, BudgetReport, CapAnswer } from "../budget/report.ts";
import type { Approval, Payment, PaymentRequest, RailOutcome, Resolver } from "./payment.ts";
import type { BudgetPolicy, BudgetPolicyPatch, Denial } from "./policy.ts";
import type { Archiver, ArchiveRefusalCode } from "./archive.ts";
import type { Leave } from "./leave.ts";
import type { AgentLifecycle } from "./state.ts";
import type { PaymentRules } from "../rules/checks.ts";

/** What can be asked of an agent's actor. Several go together in one update; each has its own reply. */
export type AgentCommand =
  | {
      readonly kind: "pay";
      /** The key that asked for it. */
      readonly keyId: string;
      readonly request: PaymentRequest;
      readonly approvalWindowSeconds: number;
      /** The actor's `projectedThrough` before the caller looked the key up in the projection; 0: no look-up. */
      readonly lookedUpThrough: number;
      /** What the rules of project and team have to say; left out where that is nothing. */
      readonly rules?: PaymentRules;
    }
  | {
      readonly kind: "confirm";
      readonly transactionId: string;
      /** Everything this revision asks for has been done. */
      readonly revision: number;
      /** What the rail said on the way, if it was called, and when. */
      readonly outcome: { readonly result: RailOutcome; readonly at: number } | null;
      /** What the budget said before, if it was asked. */
      readonly caps?: CapsHeard;
    }
  /** The budget has heard a report. */
  | { readonly kind: "confirm_report"; readonly revision: number }
  /** The project's budget was replaced: whether the agent is to ask from now on, and what its own budget is. */
  | {
      readonly kind: "heed_budget";
      readonly epoch: number;
      readonly asks: boolean;
      readonly budgetCents: number | null;
      /** Which replacement has set the budget; left out: this one. */
      readonly budgetEpoch?: number;
    }
  /** The agent's report to the budget as it is. */
  | { readonly kind: "read_report" }
  | { readonly kind: "confirm_summary"; readonly revision: number }
  /** The agent's wallet has been told of the policy of this version. */
  | { readonly kind: "confirm_limits"; readonly policyVersion: number }
  | {
      readonly kind: "approve";
      readonly transactionId: string;
      readonly by: Resolver;
      /** That this person decided so: see `Approval`. */
      readonly proof: string;
    }
  | {
      readonly kind: "deny";
      readonly transactionId: string;
      readonly by: Resolver;
      readonly feedback: string;
      readonly proof: string;
    }
  | { readonly kind: "expire"; readonly transactionId: string }
  | { readonly kind: "cancel"; readonly transactionId: string }
  | { readonly kind: "change_policy"; readonly patch: BudgetPolicyPatch; readonly version: number }
  /** Whoever says so is about to send the payment, and does if it is told to. */
  | { readonly kind: "ask_to_send"; readonly transactionId: string }
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** The payment as it is, if it is open. */
  | { readonly kind: "read_payment"; readonly transactionId: string }
  | { readonly kind: "rename"; readonly name: string }
  /** The agent's key is used, for the first time as far as its record shows. */
  | { readonly kind: "authenticate"; readonly keyId: string }
  /** By a person. `recordedKeyId`: the record's active key, for actors that do not know. */
  | { readonly kind: "mint_key"; readonly keyId: string; readonly recordedKeyId: string | null }
  | { readonly kind: "revoke_key"; readonly recordedKeyId: string | null }
  /** A replay of the create by an organization's key, whose answer has no key because the window is over. */
  | { readonly kind: "prove_non_delivery"; readonly lineageId: string }
  /** The sealed form of the key that came with the create is erased. */
  | { readonly kind: "confirm_erased" }
  | { readonly kind: "archive"; readonly by: Archiver }
  /** The service has given up its right to spend from the archived agent's wallet. */
  | { readonly kind: "confirm_detached" };

/** What the budget answered to one payment, and whether it lets the agent pay without asking from now on. */
export interface CapsHeard {
  readonly kind: AskKind;
  readonly answer: CapAnswer;
  /** The revision that it was asked with. */
  readonly reportRevision: number;
  readonly exemptEpoch: number | null;
}

/** The part of a decided payment that the caller does not have already. */
export interface PaymentDecision {
  readonly policyVersion?: number;
  readonly sequence: number;
  readonly createdAt: number;
  readonly day: string;
  readonly denial: Denial | null;
  readonly approval: Approval | null;
  /** The project's budget is to be asked first. */
  readonly ask?: "reserve";
}

export type AgentReply =
  | { readonly kind: "decided"; readonly decision: PaymentDecision }
  /** The key was seen before. `payment` while something of it is still open, else look it up by its id. */
  | {
      readonly kind: "replayed";
      readonly transactionId: string;
      readonly samePayload: boolean;
      readonly payment: Payment | null;
    }
  /** The key may be older than the actor remembers: look it up in the projection, then ask again. */
  | { readonly kind: "look_up"; readonly projectedThrough: number }
  | { readonly kind: "too_many_open" }
  /** The payment as it is after the command, and whether this command changed it. */
  | { readonly kind: "payment"; readonly changed: boolean; readonly payment: Payment }
  /** Nothing of that payment is open here: what became of it is in the projection. */
  | { readonly kind: "not_open" }
  | {
      readonly kind: "policy";
      /** As it was; an actor on an older worker does not say. */
      readonly before?: BudgetPolicy;
      readonly policy: BudgetPolicy;
      readonly policyVersion: number;
    }
  | { readonly kind: "version_conflict"; readonly policyVersion: number }
  | {
      readonly kind: "lifecycle";
      readonly lifecycle: AgentLifecycle;
      readonly changed: boolean;
      /** So long some process may still begin to send what was decided before the pause; left out: none may. */
      readonly quietAfterMs?: number;
    }
  | { readonly kind: "leave"; readonly leave: Leave }
  | { readonly kind: "archived" }
  /** The key that asked is no longer the agent's. */
  | { readonly kind: "dead_key" }
  | { readonly kind: "confirmed" }
  /** Null: nothing is to be reported. */
  | { readonly kind: "report"; readonly report: BudgetReport | null }
  /** The agent's record of this revision, and any later one, has the name. */
  | { readonly kind: "renamed"; readonly revision: number }
  /** Whether the key is the agent's active one: then it counts as used from now on. */
  | { readonly kind: "authenticated"; readonly accepted: boolean }
  /** The key that was minted or revoked. */
  | { readonly kind: "key"; readonly keyId: string }
  | { readonly kind: "key_exists" }
  | { readonly kind: "no_key" }
  /** Whether the window is over, and the proof is stamped for the lineage that asked. */
  | { readonly kind: "non_delivery"; readonly windowOver: boolean; readonly proven: boolean }
  /** The agent is archived, by this command or (`changed` false) before. `ended`: the payments on hold that it denied. */
  | { readonly kind: "archive"; readonly changed: boolean; readonly ended?: readonly string[] }
  | { readonly kind: "archive_refused"; readonly code: ArchiveRefusalCode };

/** The payment as the actor has it, put together from the request that was sent and the decision that came back. */
export function decidedPayment(request: PaymentRequest, decision: PaymentDecision): Payment {
  const denied = decision.denial !== null;
  const held = decision.approval !== null;
  return {
    request,
    sequence: decision.sequence,
    createdAt: decision.createdAt,
    day: decision.day,
    status: denied ? "denied" : "pending",
    phase: denied ? "done" : held ? "held" : "sending",
    executor: held ? "approval" : "server",
    denial: decision.denial,
    deniedAt: denied ? decision.createdAt : null,
    approval: decision.approval,
    onChainTxHash: null,
    chainCaip2: null,
    ...(decision.ask === undefined ? {} : { ask: decision.ask, asked: true as const }),
    ...(decision.policyVersion === undefined ? {} : { policyVersion: decision.policyVersion }),
    revision: 1,
  };
}
