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
import type { Calendar, CalendarSettings, WindowBounds, Zone } from "./calendar.ts";
import type { LimitThen } from "./measures.ts";
import type { PossibleDuplicate } from "./duplicates.ts";
import type { Grant, RaiseBasis } from "./raises.ts";
import type { Usage } from "./usage.ts";
import type { PaymentRules } from "../rules/checks.ts";
import type { Forbidden } from "../rules/restrictions.ts";
import type { Cap, NewAccount, AccountStatus } from "./state.ts";
import type { Warning } from "./thresholds.ts";
import type { SpendLimit } from "./windows.ts";

/** Commands of a ledger. An update holds several, which are judged in their order; each has its own reply. */
export type LedgerCommand = (AccountCommand | LevelCommand) & {
  /** Id of a request by a person or a backend; a repeated request gets its first reply. */
  readonly requestId?: string;
};

export type AccountCommand = { readonly agentId: string } & (
  | ({ readonly kind: "open_account" } & Omit<NewAccount, "agentId">)
  | {
      readonly kind: "pay";
      /** Key of the request. */
      readonly keyId: string;
      /** Revision of the caller's cached agent, by which the key was checked; missing if just read. */
      readonly cachedAgentRevision?: number;
      readonly request: PaymentRequest;
      readonly approvalWindowSeconds: number;
      /** The agent's closed payments when the caller looked the key up in the records; 0 without a look-up. */
      readonly recordsCheckedThrough: number;
      /** Inputs of the approval rules of project and team; missing without rules. */
      readonly rules?: PaymentRules;
      /** Restriction that forbids the payment, from the versions in the request. */
      readonly forbidden?: Forbidden;
    }
  | {
      readonly kind: "confirm";
      readonly transactionId: string;
      /** Revision whose effects are all done. */
      readonly revision: number;
      /** The rail's outcome and its time, if the rail was called. */
      readonly outcome: { readonly result: RailOutcome; readonly at: number } | null;
    }
  /** Reports of the payment's network. */
  | {
      readonly kind: "book";
      readonly transactionId: string;
      readonly books: readonly RailBooks[];
      /** The payment from its record, if the ledger has closed it. */
      readonly closed?: StoredPayment;
      /** Number of the agent's closed payments when that record was read; 0 without a record. */
      readonly recordsCheckedThrough: number;
      /** The agent from its records, if the ledger has dropped its account. */
      readonly dropped?: DroppedAccount;
    }
  /** Request of the payment's network to charge an additional amount. */
  | {
      readonly kind: "authorize";
      readonly transactionId: string;
      readonly authorization: string;
      /** Number of the request within its authorization, from 0; null if the network does not tell it. */
      readonly position: number | null;
      readonly amountMc: number;
      /** Merchant, as named by the network. */
      readonly merchant: string;
      /** Restriction that forbids the merchant's category, and the versions by which it was judged. */
      readonly forbidden?: Forbidden;
      readonly rulesVersions?: RulesVersions;
      /** Epoch milliseconds up to which the network waits. */
      readonly answerBy: number;
    }
  /** The agent's wallet mirrors this policy version. */
  | { readonly kind: "confirm_limits"; readonly policyVersion: number }
  | {
      readonly kind: "approve";
      readonly transactionId: string;
      readonly by: Resolver;
      /** Proof of the person's decision; see `Approval`. */
      readonly proof: string;
      /** Restriction that forbids the payment now, and the versions by which it was judged. */
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
  /** The caller is about to send the payment if it gets a permit. */
  | { readonly kind: "request_permission"; readonly transactionId: string }
  /** Reads an open payment. */
  | { readonly kind: "read_payment"; readonly transactionId: string }
  /** A person's grant of a raise: raises all limits without room for the amount; see `grantRaise`. */
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
  /** Ends the pause that began at `pausedAt`, so that a late resume ends no later one; any pause if missing. */
  | { readonly kind: "resume"; readonly pausedAt?: number | null }
  /** The agent's restrictions were replaced: older ones judge no payment any more. */
  | { readonly kind: "follow_restrictions"; readonly version: number }
  /** The agent's state at a revision of its actor; an older one changes nothing. */
  | ({ readonly kind: "follow_agent" } & FollowedAgent)
);

export type LevelCommand =
  | {
      readonly kind: "replace_project";
      readonly version: number;
      readonly capCents: number | null;
      /** If missing, the present ones stay. */
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
      /** Version to replace. */
      readonly version: number;
    } & CalendarSettings &
      Zone)
  /** Offsets of the calendar's zone from newer data, or for a longer time. */
  | ({ readonly kind: "follow_zone" } & Zone)
  /**
   * Rules or restrictions of the project (`teamId` null) or a team were replaced: older ones judge no payment any more.
   */
  | { readonly kind: "follow_rules"; readonly teamId: string | null; readonly version: number }
  /** Pauses every agent of a team or of the project (`teamId` null), and with `revokeKeys` revokes its key. */
  | { readonly kind: "stop_accounts"; readonly teamId: string | null; readonly revokeKeys: boolean }
  /** Agents' actors know these account statuses and no longer have the revoked keys. */
  | { readonly kind: "confirm_actors"; readonly actors: readonly KnownToActor[] }
  /** Agents' records show their accounts at these revisions, and the accounts' events are in the journal. */
  | {
      readonly kind: "confirm_records";
      readonly records: readonly { readonly agentId: string; readonly revision: number }[];
    }
  /** Records of the project (`teamId` null) and of teams show their caps at these versions. */
  | {
      readonly kind: "confirm_caps";
      readonly caps: readonly { readonly teamId: string | null; readonly version: number }[];
    };

/** Windows in which the amounts of a dropped account are counted. */
export type DroppedWindows = Pick<WindowBounds, "at" | "starts">;

/** An archived agent without an account, from its records. */
export interface DroppedAccount {
  /** Ledger revision before the records were read. They are outdated if an account was dropped since that revision. */
  readonly asOfRevision: number;
  readonly teamId: string;
  readonly name: string;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  readonly spentMc: number;
  /** Newest day on which anything is counted. */
  readonly day: Usage["day"];
  /** Amounts in the windows of the ledger's answer. */
  readonly windows: Usage["windows"];
  /** Number of its payments, all closed. */
  readonly closed: number;
  /** Account revision that the records show. */
  readonly revision: number;
}

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
  /** Missing if the payment counts in windows at `createdAt`. */
  readonly windowAt?: number;
  /** Limits that the payment brought to a threshold; missing if none. */
  readonly warnings?: readonly Warning[];
  /** Types of shadow rules that would have flagged the payment; missing if none. */
  readonly wouldHaveFlagged?: readonly string[];
  readonly limits: readonly LimitThen[];
  readonly denial: Denial | null;
  readonly approval: Approval | null;
}

/** Current cap of the project (`teamId` null) or a team. */
export interface RecordedCap {
  readonly teamId: string | null;
  readonly cap: Cap;
  /** Only the project's, and only if one is set. */
  readonly calendar?: Calendar;
}

/** `P`: payments as stored in the ledger, or complete. */
export type LedgerReply<P extends StoredPayment = StoredPayment> =
  | {
      readonly kind: "decided";
      readonly decision: PaymentDecision;
      /** Permit to send the payment at once; null if denied or held. */
      readonly permit: number | null;
      /** Missing if the agent has recently made no similar payment. */
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
  /** The open payments of the agent (if it has any), or of the project, have reached their maximum number or bytes. */
  | {
      readonly kind: "too_many_open";
      readonly of: "agent" | "project";
      readonly bound: "payments" | "bytes";
      /** Time at which the first payment that can make room ends by itself; null if none is open. */
      readonly freesAt: number | null;
    }
  /** The request's key is not the agent's active key. */
  | { readonly kind: "inactive_key" }
  /** The payment after the command, and whether this command changed it. */
  | {
      readonly kind: "payment";
      readonly changed: boolean;
      readonly payment: P;
      /** Permit to send at once a payment that the command approved; missing otherwise. */
      readonly permit?: number;
    }
  /** The payment is not open here: its final state is in the records. */
  | { readonly kind: "not_open" }
  /**
   * The account was dropped at this revision of the ledger: read its records, with the amounts in these windows, then
   * submit again.
   */
  | {
      readonly kind: "account_dropped";
      readonly revision: number;
      readonly windows: DroppedWindows;
    }
  /** Answer to a network's request. `refusal` is null if granted, `payment` null if none is open. */
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
  /** `caps` are to be written to the records. */
  | { readonly kind: "raised"; readonly grant: Grant; readonly caps: readonly RecordedCap[] }
  /** Every limit has room for the amount. */
  | { readonly kind: "raise_not_needed" }
  /** Another grant was judged, or a limit was set, after the grant was decided. */
  | { readonly kind: "raise_stale" }
  /** A limit would exceed the maximum amount or have too many increases, or `endsAt` has passed. */
  | { readonly kind: "raise_impossible" }
  | { readonly kind: "version_conflict"; readonly version: number }
  | {
      readonly kind: "account_status";
      readonly status: AccountStatus;
      readonly changed: boolean;
      /** Fence to lay before a pause is answered; null if nothing is in flight. */
      readonly fence: Fence | null;
    }
  /** The agent was paused or stopped again since the resume was requested. */
  | { readonly kind: "paused_again" }
  | {
      readonly kind: "stopped";
      readonly paused: number;
      readonly revoked: number;
      /** Fences to lay before the stop is answered. */
      readonly fences: readonly Fence[];
    }
  /** The account follows its agent's actor. `ended`: held payments that were denied because the account was closed. */
  | { readonly kind: "followed"; readonly ended: readonly string[] }
  /** The account does not exist, or no longer does. */
  | { readonly kind: "no_account" }
  | { readonly kind: "opened"; readonly changed: boolean }
  /** The project accepts no more agents: their maximum number, or the ledger's bytes, are reached. */
  | { readonly kind: "project_full"; readonly bound: "accounts" | "bytes" }
  /** `caps` are to be written to the records. */
  | { readonly kind: "replaced"; readonly version: number; readonly caps: readonly RecordedCap[] }
  /** The previous and the present calendar. `caps` are to be written to the records. */
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
