import type { FollowedAgent } from "../agent/state.ts";
import type { Fence, Permission } from "./permission.ts";
import type {
  Approval,
  PaymentRequest,
  RailOutcome,
  Resolver,
  RulesVersions,
  StoredPayment,
} from "./payment.ts";
import type { AuthorizationRefusal, RailBooks } from "./books.ts";
import type { BudgetPolicy, BudgetPolicyPatch, Denial } from "./policy.ts";
import type { Calendar, CalendarSettings, Zone } from "./calendar.ts";
import type { LimitThen } from "./measures.ts";
import type { PossibleDuplicate } from "./duplicates.ts";
import type { Grant, RaiseBasis } from "./raises.ts";
import type { Usage } from "./usage.ts";
import type { PaymentRules } from "../rules/checks.ts";
import type { Forbidden } from "../rules/restrictions.ts";
import type { Cap, NewAccount, AccountStatus } from "./state.ts";
import type { Warning } from "./thresholds.ts";
import type { SpendLimit } from "./windows.ts";

/** The commands of a ledger. Several go together in one update, and are judged in their order; each has its own reply. */
export type LedgerCommand = (AccountCommand | LevelCommand) & {
  /** Identifies a request by a person or a backend; a repeated one gets its first reply. */
  readonly requestId?: string;
};

/** Commands about one agent's account. */
export type AccountCommand = { readonly agentId: string } & (
  | ({ readonly kind: "open_account" } & Omit<NewAccount, "agentId">)
  | {
      readonly kind: "pay";
      /** The key of the request. */
      readonly keyId: string;
      /**
       * The revision at which the caller has the agent in its memory, and by it knows the key; left out where it has just read the agent's
       * record.
       */
      readonly cachedAgentRevision?: number;
      readonly request: PaymentRequest;
      readonly approvalWindowSeconds: number;
      /**
       * Number of the agent's closed payments when the caller looked the key up in the records; 0 without a look-up.
       */
      readonly recordsCheckedThrough: number;
      /** Inputs of the approval rules of project and team; absent without rules. */
      readonly rules?: PaymentRules;
      /** The restriction that forbids the payment, of the versions in the request. */
      readonly forbidden?: Forbidden;
    }
  | {
      readonly kind: "confirm";
      readonly transactionId: string;
      /** Revision whose effects are all done. */
      readonly revision: number;
      /** The rail's outcome, if it was called, and when. */
      readonly outcome: { readonly result: RailOutcome; readonly at: number } | null;
    }
  /** Reports of the payment's network. */
  | {
      readonly kind: "book";
      readonly transactionId: string;
      readonly books: readonly RailBooks[];
      /** The payment as its record has it, where the ledger has closed it. */
      readonly closed?: StoredPayment;
      /** Number of the agent's closed payments when that record was read; 0 without one. */
      readonly recordsCheckedThrough: number;
      /** The agent as its records have it, where the ledger has dropped its account. */
      readonly dropped?: DroppedAccount;
    }
  /** The payment's network asks whether it may charge so much more. */
  | {
      readonly kind: "authorize";
      readonly transactionId: string;
      readonly authorization: string;
      /** The request's number among those of its authorization, from 0. */
      readonly position: number;
      readonly amountMc: number;
      /** The merchant, as its network names it. */
      readonly merchant: string;
      /** The restriction that forbids its line of business, and the versions that it was judged by. */
      readonly forbidden?: Forbidden;
      readonly rulesVersions?: RulesVersions;
      /** Epoch milliseconds; the network does not wait longer. */
      readonly answerBy: number;
    }
  /** The agent's wallet mirrors the policy of this version. */
  | { readonly kind: "confirm_limits"; readonly policyVersion: number }
  | {
      readonly kind: "approve";
      readonly transactionId: string;
      readonly by: Resolver;
      /** Proof of the person's decision; see `Approval`. */
      readonly proof: string;
      /** The restriction that forbids the payment by now, and the versions that it was judged by. */
      readonly forbidden?: Forbidden;
      readonly rulesVersions?: RulesVersions;
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
  /** The caller is about to send the payment, and does so if it is given a permit. */
  | { readonly kind: "request_permission"; readonly transactionId: string }
  /** The payment as it is, if it is open. */
  | { readonly kind: "read_payment"; readonly transactionId: string }
  /** A person has granted a raise: all limits that have no room for the amount are raised; see `grantRaise`. */
  | {
      readonly kind: "grant_raise";
      readonly raiseId: string;
      readonly amountMc: number;
      readonly endsAt?: number | null;
      readonly basis: RaiseBasis;
    }
  /** The record of the grant is written. */
  | { readonly kind: "confirm_raise"; readonly raiseId: string }
  | { readonly kind: "change_policy"; readonly patch: BudgetPolicyPatch; readonly version: number }
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** The agent's restrictions were replaced: no older ones judge its payments from now on. */
  | { readonly kind: "follow_restrictions"; readonly version: number }
  /** The agent's state at this revision of its actor; an older one changes nothing. */
  | ({ readonly kind: "follow_agent" } & FollowedAgent)
);

/** Commands about the project or one of its teams. */
export type LevelCommand =
  | {
      readonly kind: "replace_project";
      readonly version: number;
      readonly capCents: number | null;
      /** Left out: they stay. */
      readonly spendLimits?: readonly SpendLimit[];
      readonly teams: readonly { readonly teamId: string; readonly capCents: number | null }[];
    }
  | {
      readonly kind: "replace_team";
      readonly teamId: string;
      readonly version: number;
      readonly capCents: number | null;
      readonly spendLimits?: readonly SpendLimit[];
      readonly agents: readonly { readonly agentId: string; readonly budgetCents: number }[];
    }
  | ({
      readonly kind: "replace_calendar";
      /** The version that it replaces. */
      readonly version: number;
    } & CalendarSettings &
      Zone)
  /** Offsets of the calendar's zone by newer data, or for a longer time. */
  | ({ readonly kind: "follow_zone" } & Zone)
  /** Rules or restrictions of the project (`teamId` null) or a team were replaced: no older ones judge a payment from now on. */
  | { readonly kind: "follow_rules"; readonly teamId: string | null; readonly version: number }
  /** Stops every agent of a team, or of the project (`teamId` null): pauses it, and with `revokeKeys` takes its key. */
  | { readonly kind: "stop_accounts"; readonly teamId: string | null; readonly revokeKeys: boolean }
  /** Actors of agents know this status of the account, and no longer have the revoked key. */
  | { readonly kind: "confirm_actors"; readonly actors: readonly KnownToActor[] }
  /** Agents' records show their accounts at these revisions, and the accounts' events are in the journal. */
  | {
      readonly kind: "confirm_records";
      readonly records: readonly { readonly agentId: string; readonly revision: number }[];
    }
  /** The records of the project (`teamId` null) and of teams show their caps at these versions. */
  | {
      readonly kind: "confirm_caps";
      readonly caps: readonly { readonly teamId: string | null; readonly version: number }[];
    };

/** An archived agent without an account, as its records have it. */
export interface DroppedAccount {
  /** The ledger's revision when the records were read later: no account was dropped since. */
  readonly asOfRevision: number;
  readonly teamId: string;
  readonly name: string;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  readonly spentMc: number;
  /** The newest day on which anything is counted. */
  readonly day: Usage["day"];
  /** Number of its payments, all of them closed. */
  readonly closed: number;
  /** The revision of its account that the records show. */
  readonly revision: number;
}

/** The account's state as an agent's actor was told it. */
export interface KnownToActor {
  readonly agentId: string;
  readonly status: "active" | "paused";
  readonly revokedKeyId: string | null;
}

/** The part of a decided payment that the caller does not have already. */
export interface PaymentDecision {
  readonly policyVersion: number;
  readonly sequence: number;
  readonly createdAt: number;
  readonly countedAt: number;
  readonly day: string;
  /** Left out: it counts in windows as of `createdAt`. */
  readonly windowAt?: number;
  /** Limits that it has brought to a threshold; left out: none. */
  readonly warnings?: readonly Warning[];
  /** Types of rules in the shadow that would have flagged it; left out: none. */
  readonly wouldHaveFlagged?: readonly string[];
  readonly limits: readonly LimitThen[];
  readonly denial: Denial | null;
  readonly approval: Approval | null;
}

/** The current cap of the project (`teamId` null) or a team. */
export interface RecordedCap {
  readonly teamId: string | null;
  readonly cap: Cap;
  /** The project's, unless it has set none. */
  readonly calendar?: Calendar;
}

/** `P`: payments as the ledger has them, or whole. */
export type LedgerReply<P extends StoredPayment = StoredPayment> =
  | {
      readonly kind: "decided";
      readonly decision: PaymentDecision;
      /** To send the payment at once; null where it is denied or held. */
      readonly permit: number | null;
      /** Left out: the agent has made no payment like it lately. */
      readonly duplicate?: PossibleDuplicate;
    }
  /** The key was used before, and its payment is open. */
  | {
      readonly kind: "replayed";
      readonly transactionId: string;
      readonly samePayload: boolean;
      readonly payment: P;
    }
  /** The key was used before, and its payment's final state is in the records. */
  | { readonly kind: "recorded" }
  /** The key may have been evicted: check the records, then submit again. */
  | { readonly kind: "records_check_required"; readonly closed: number }
  /** The agent has changed since the caller read its record: read it, then submit again. */
  | { readonly kind: "stale_agent" }
  /** The payment was judged by rules or restrictions that were replaced since: read them, then submit again. */
  | { readonly kind: "stale_rules" }
  /** The open payments of the agent (where it has any), or of the project, are as many as may be, or take as many bytes. */
  | {
      readonly kind: "too_many_open";
      readonly of: "agent" | "project";
      readonly bound: "payments" | "bytes";
      /** Time at which the first payment that can make room ends by itself; null if none is open. */
      readonly freesAt: number | null;
    }
  /** The request's key is not the agent's active key. */
  | { readonly kind: "inactive_key" }
  /** The payment as it is after the command, and whether this command changed it. */
  | {
      readonly kind: "payment";
      readonly changed: boolean;
      readonly payment: P;
      /** To send at once what the command has approved; left out otherwise. */
      readonly permit?: number;
    }
  /** The payment is not open here: its final state is in the records. */
  | { readonly kind: "not_open" }
  /** The account was dropped by this revision of the ledger: read its records, then submit again. */
  | { readonly kind: "account_dropped"; readonly revision: number }
  /** The answer to a request of the network; `refusal` null: it is granted. `payment` null: none is open. */
  | {
      readonly kind: "authorization";
      readonly refusal: AuthorizationRefusal | null;
      readonly payment: P | null;
    }
  | { readonly kind: "permission"; readonly permission: Permission }
  | {
      readonly kind: "policy";
      readonly before: BudgetPolicy;
      readonly policy: BudgetPolicy;
      readonly policyVersion: number;
    }
  /** `caps`: those that are to be in the records. */
  | { readonly kind: "raised"; readonly grant: Grant; readonly caps: readonly RecordedCap[] }
  /** Every limit has room for the amount. */
  | { readonly kind: "raise_not_needed" }
  /** Since the grant was decided, another one was judged or a limit was set. */
  | { readonly kind: "raise_stale" }
  /** A limit would be above the highest amount, have too many increases at once, or `endsAt` has passed. */
  | { readonly kind: "raise_impossible" }
  | { readonly kind: "version_conflict"; readonly version: number }
  | {
      readonly kind: "account_status";
      readonly status: AccountStatus;
      readonly changed: boolean;
      /** Laid before a pause is answered; null: nothing is on its way. */
      readonly fence: Fence | null;
    }
  /** Numbers of paused agents and revoked keys. */
  | {
      readonly kind: "stopped";
      readonly paused: number;
      readonly revoked: number;
      /** Fences to lay before the stop is answered. */
      readonly fences: readonly Fence[];
    }
  /** The account follows its agent's actor. `ended`: the payments on hold that closing it has denied. */
  | { readonly kind: "followed"; readonly ended: readonly string[] }
  /** The account does not exist, or no longer does. */
  | { readonly kind: "no_account" }
  | { readonly kind: "opened"; readonly changed: boolean }
  /** The project takes no more agents: they are as many as may be, or its ledger takes as many bytes. */
  | { readonly kind: "project_full"; readonly bound: "accounts" | "bytes" }
  /** `caps`: those that are to be in the records. */
  | { readonly kind: "replaced"; readonly version: number; readonly caps: readonly RecordedCap[] }
  /** The calendar that was in force, and the one that is now. `caps`: what is to be in the records. */
  | {
      readonly kind: "calendar";
      readonly before: Calendar;
      readonly calendar: Calendar;
      readonly caps: readonly RecordedCap[];
    }
  | { readonly kind: "confirmed" }
  /** The command could not be judged, and changed nothing. */
  | { readonly kind: "failed"; readonly message: string };

export type CommandOf<K extends LedgerCommand["kind"]> = Extract<LedgerCommand, { readonly kind: K }>;
