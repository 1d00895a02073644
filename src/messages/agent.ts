import type { AgentCommand, AgentCommandOf, AgentReply } from "../domain/agent/commands.ts";
import type { FirstKey } from "../domain/agent/access.ts";
import type { AgentProfile, AgentState, AgentSummary, FollowedAgent } from "../domain/agent/state.ts";

/** Names and payloads of the messages to an agent's actor; shared by the workflow and its callers. */

export const AGENT_WORKFLOW = "agent";
export const agentWorkflowId = (agentId: string): string => `agent/${agentId}`;

/** How an agent's actor begins, or goes on after continue-as-new. */
export interface AgentInput {
  readonly start:
    | { readonly kind: "create"; readonly profile: AgentProfile; readonly firstKey: FirstKey }
    | {
        readonly kind: "resume";
        readonly state: AgentState;
        /** Whether its create was discarded: its record is not written any more. */
        readonly isDiscarded: boolean;
      };
  readonly settings: AgentSettings;
}

export interface AgentSettings {
  /** What is not confirmed after this long is executed by the actor's sweep. */
  readonly sweepAfterSeconds: number;
  /** Rolls over to a new run at this history length, or when the engine suggests it. */
  readonly rollOverAfterEvents: number;
}

export const AGENT_SETTINGS: AgentSettings = { sweepAfterSeconds: 10, rollOverAfterEvents: 1_000 };

/** The one update of an agent's actor: a batch of commands, decided one after another in one workflow task. */
export const SUBMIT_UPDATE = "submit";

/** Commands that go in one update at the most. */
export const SUBMIT_BATCH_MAX = 128;

/** What an agent's actor is told of its account. */
export type ToldActor = { readonly agentId: string } & Omit<AgentCommandOf<"follow_status">, "kind">;

export interface SubmitResult {
  /** One reply for each command, in order. */
  readonly replies: readonly AgentReply[];
  /** What the agent's record is not known to show; null: it shows all. */
  readonly unrecorded: AgentSummary | null;
  /** What the ledger is to follow and is not known to; null: nothing. */
  readonly unfollowed: { readonly agent: AgentProfile; readonly followed: FollowedAgent } | null;
}

/** Operators' view in the Temporal UI. */
export const STATE_QUERY = "state";
export type AgentStateView = AgentState;

export type { AgentCommand };
