import type { AgentCommand, AgentReply, CapsHeard } from "../domain/agent/commands.ts";
import type { BudgetReport } from "../domain/budget/report.ts";
import type { AssessedPayment, Assessment } from "../domain/agent/decide.ts";
import type { Payment, RailOutcome } from "../domain/agent/payment.ts";
import type { FirstKey } from "../domain/agent/access.ts";
import type { BudgetPolicy } from "../domain/agent/policy.ts";
import type { AgentBooks, AgentProfile, AgentState, AgentSummary } from "../domain/agent/state.ts";

/** Names and payloads of what is said to an agent's actor; shared by the workflow and its callers. */

export const AGENT_WORKFLOW = "agent";
export const agentWorkflowId = (agentId: string): string => `agent/${agentId}`;

/** How an agent's actor begins, or goes on after continue-as-new. */
export interface AgentInput {
  readonly start:
    | {
        readonly kind: "create";
        readonly profile: AgentProfile;
        readonly policy: BudgetPolicy;
        /** Not there in actors from before they knew of keys. */
        readonly firstKey?: FirstKey;
        /** It asks its project's budget before it pays. Not there in actors from before there were caps. */
        readonly asksForCaps?: boolean;
      }
    | { readonly kind: "resume"; readonly state: AgentState };
  readonly settings: AgentSettings;
}

export interface AgentSettings {
  /** What is not confirmed after this long, the actor carries out itself. */
  readonly sweepAfterSeconds: number;
  /** Rolls over to a new run at this history length, or when the server suggests it. */
  readonly rollOverAfterEvents: number;
  /** Whether a changed policy is mirrored into the agent's wallet. Actors from before there were wallets do not. */
  readonly mirrorsLimits?: boolean;
}

export const AGENT_SETTINGS: AgentSettings = {
  sweepAfterSeconds: 10,
  rollOverAfterEvents: 4_000,
  mirrorsLimits: true,
};

/** The one update of an agent's actor: a batch of commands, decided one after another in one workflow task. */
export const SUBMIT_UPDATE = "submit";

/** Commands that go in one update at the most. */
export const SUBMIT_BATCH_MAX = 128;

export interface SubmitResult {
  /** One reply for each command, in order. */
  readonly replies: readonly AgentReply[];
  readonly summary: AgentSummary;
  /** For idempotency keys the actor no longer remembers (see `decidePay`). */
  readonly forgottenThrough: number;
  readonly projectedThrough: number;
  /** For the project's budget; left out where it is to hear nothing. */
  readonly budget?: BudgetShare;
}

/** What an agent's actor has for its project's budget. */
export interface BudgetShare {
  readonly place: { readonly organizationId: string; readonly projectId: string };
  readonly report: BudgetReport;
  /** The newest revision that the budget is to hear of at once, since it releases something; null: none. */
  readonly owedRevision: number | null;
}

/** Operators' view in the Temporal UI: everything but the table of remembered keys. */
export const STATE_QUERY = "state";
export type AgentStateView = AgentBooks & { readonly rememberedKeyCount: number };

/** The policy with its usage as of `now`; with a payment, also what that would get. No effect. */
export const BUDGET_QUERY = "budget";

export interface BudgetQueryInput {
  /** The caller's time: a query runs at the time of the actor's last task, which may be long ago. */
  readonly now: number;
  /** Whoever asks has looked for a like payment in the projection, if a rule does, after telling the actor all it knows. */
  readonly payment?: AssessedPayment | null;
}

export interface BudgetView {
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  readonly spentCents: number;
  readonly reservedCents: number;
  readonly remainingCents: number;
  readonly todayCents: number;
  readonly lastHourCount: number;
  readonly todayCount: number;
  readonly assessment: Assessment | null;
  /** Null where the agent pays without asking: no cap is over it. */
  readonly report: BudgetReport | null;
}

/**
 * What one look after a payment has done: the effects of `revision`, and what the rail said on the way. Revision 0: not all
 * of what it asks for was done, so it is looked after again.
 */
export interface CarriedOut {
  readonly transactionId: string;
  readonly revision: number;
  readonly outcome: { readonly result: RailOutcome; readonly at: number } | null;
  /** What the budget said before, if it was asked. */
  readonly caps?: CapsHeard;
  /** The payment as budget and rail have left it. */
  readonly payment: Payment;
}

/** What the actor is told of it. */
export const confirmationOf = ({
  caps,
  outcome,
  revision,
  transactionId,
}: CarriedOut): Extract<AgentCommand, { kind: "confirm" }> => ({
  kind: "confirm",
  transactionId,
  revision,
  outcome,
  ...(caps === undefined ? {} : { caps }),
});

export type { AgentCommand };
