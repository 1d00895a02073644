import type { FollowedAgent } from "../agent/state.ts";
import type { Lease } from "./lease.ts";
import type { Approval, Payment, PaymentRequest, RailOutcome, Resolver } from "./payment.ts";
import type { BudgetPolicy, BudgetPolicyPatch, Denial } from "./policy.ts";
import type { PaymentRules } from "../rules/checks.ts";
import type { Cap, NewAccount, Standing } from "./state.ts";

/** What can be asked of a ledger. Several go together in one update, and are judged in their order; each has its own reply. */
export type LedgerCommand = (AccountCommand | LevelCommand) & {
  /** Of what a person or a backend has asked for: brought again by the engine, it gets its first answer again. */
  readonly requestId?: string;
};

/** What is about one agent's account. */
export type AccountCommand = { readonly agentId: string } & (
  | ({ readonly kind: "open_account" } & Omit<NewAccount, "agentId">)
  | {
      readonly kind: "pay";
      /** The key that asked for it. */
      readonly keyId: string;
      /**
       * The revision at which the caller has the agent in its memory, and by it knows the key; left out where it has just read the agent's
       * record.
       */
      readonly rememberedRevision?: number;
      readonly request: PaymentRequest;
      readonly approvalWindowSeconds: number;
      /** How many of the agent's payments were closed before the caller looked its key up in the records; 0: no look-up. */
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
    }
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
  /** Whoever says so is about to send the payment, and does if it is told to. */
  | { readonly kind: "request_lease"; readonly transactionId: string }
  /** The payment as it is, if it is open. */
  | { readonly kind: "read_payment"; readonly transactionId: string }
  | { readonly kind: "change_policy"; readonly patch: BudgetPolicyPatch; readonly version: number }
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** The agent as its actor has it at this revision of the actor's; an older one changes nothing. */
  | ({ readonly kind: "follow_agent" } & FollowedAgent)
);

/** What is about the project or one of its teams. */
export type LevelCommand =
  | {
      readonly kind: "replace_project";
      readonly version: number;
      readonly capCents: number | null;
      readonly teams: readonly { readonly teamId: string; readonly capCents: number | null }[];
    }
  | {
      readonly kind: "replace_team";
      readonly teamId: string;
      readonly version: number;
      readonly capCents: number | null;
      readonly agents: readonly { readonly agentId: string; readonly budgetCents: number }[];
    }
  /** The rules of the project (`teamId` null) or a team were replaced: none older judges a payment from now on. */
  | { readonly kind: "follow_rules"; readonly teamId: string | null; readonly version: number }
  /** Agents' records show their accounts at these revisions, and what happened to the accounts is in the journal. */
  | {
      readonly kind: "confirm_records";
      readonly records: readonly { readonly agentId: string; readonly revision: number }[];
    }
  /** The records of the project (`teamId` null) and of teams show their caps at these versions. */
  | {
      readonly kind: "confirm_caps";
      readonly caps: readonly { readonly teamId: string | null; readonly version: number }[];
    };

/** The part of a decided payment that the caller does not have already. */
export interface PaymentDecision {
  readonly policyVersion: number;
  readonly sequence: number;
  readonly createdAt: number;
  readonly countedAt: number;
  readonly day: string;
  readonly denial: Denial | null;
  readonly approval: Approval | null;
}

/** The cap of the project (`teamId` null) or a team, as it stands. */
export interface RecordedCap {
  readonly teamId: string | null;
  readonly cap: Cap;
}

export type LedgerReply =
  | { readonly kind: "decided"; readonly decision: PaymentDecision }
  /** The key was seen before. `payment` while something of it is open. */
  | {
      readonly kind: "replayed";
      readonly transactionId: string;
      readonly samePayload: boolean;
      readonly payment: Payment;
    }
  /** The key was seen before, and what became of its payment is in the records for good. */
  | { readonly kind: "recorded" }
  /** The key may be older than the ledger remembers: look it up in the records, then ask again. */
  | { readonly kind: "look_up"; readonly closed: number }
  /** The agent has changed since the caller read its record: read it, then ask again. */
  | { readonly kind: "stale_agent" }
  /** The payment was judged by rules that were replaced since: read them, then ask again. */
  | { readonly kind: "stale_rules" }
  /** As many payments of the agent, or of the project, are open as may be. */
  | { readonly kind: "too_many_open"; readonly of: "agent" | "project" }
  /** The key that asked is not the one that may pay. */
  | { readonly kind: "dead_key" }
  /** The payment as it is after the command, and whether this command changed it. */
  | { readonly kind: "payment"; readonly changed: boolean; readonly payment: Payment }
  /** Nothing of that payment is open here: what became of it is in the records. */
  | { readonly kind: "not_open" }
  | { readonly kind: "lease"; readonly lease: Lease }
  | {
      readonly kind: "policy";
      readonly before: BudgetPolicy;
      readonly policy: BudgetPolicy;
      readonly policyVersion: number;
    }
  | { readonly kind: "version_conflict"; readonly version: number }
  | {
      readonly kind: "standing";
      readonly standing: Standing;
      readonly changed: boolean;
      /** So long some process may still begin to send what was decided before the pause; 0: none may. */
      readonly quietAfterMs: number;
    }
  /** The account is as its agent's actor has it. `ended`: the payments on hold that closing it has denied. */
  | { readonly kind: "followed"; readonly ended: readonly string[] }
  /** There is no such account, or none any more. */
  | { readonly kind: "no_account" }
  | { readonly kind: "opened"; readonly changed: boolean }
  /** The project takes no more agents. */
  | { readonly kind: "project_full" }
  /** `caps`: those that are to be in the records. */
  | { readonly kind: "replaced"; readonly version: number; readonly caps: readonly RecordedCap[] }
  | { readonly kind: "confirmed" }
  /** The command could not be judged: nothing of it is so. */
  | { readonly kind: "failed"; readonly message: string };

export type CommandOf<K extends LedgerCommand["kind"]> = Extract<LedgerCommand, { readonly kind: K }>;
