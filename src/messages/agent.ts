import type { AgentCommand, AgentCommandOf, AgentReply } from "../domain/agent/commands.ts";
import type { FirstKey } from "../domain/agent/access.ts";
import type { AgentProfile, AgentState, AgentSummary, FollowedAgent } from "../domain/agent/state.ts";

/** Names and payloads of the messages to an agent's actor, shared by the workflow and its callers. */

export const AGENT_WORKFLOW = "agent";
export const agentWorkflowId = (agentId: string): string => `agent/${agentId}`;

/** Start of an agent's actor, or its continuation after continue-as-new. */
export interface AgentInput {
  readonly start:
    | { readonly kind: "create"; readonly profile: AgentProfile; readonly firstKey: FirstKey }
    | {
        readonly kind: "resume";
        readonly state: AgentState;
        /** Whether the agent's create was discarded, so that its record is no longer written. */
        readonly isDiscarded: boolean;
      };
  readonly settings: AgentSettings;
}

export interface AgentSettings {
  /** Age at which the actor's sweep executes an unconfirmed effect. */
  readonly sweepAfterSeconds: number;
  /** History length at which the workflow continues as new, unless Temporal suggests it earlier. */
  readonly rollOverAfterEvents: number;
}

export const AGENT_SETTINGS: AgentSettings = { sweepAfterSeconds: 10, rollOverAfterEvents: 1_000 };

/** The only update of an agent's actor: a batch of commands, decided one after another in one workflow task. */
export const SUBMIT_UPDATE = "submit";

export const SUBMIT_BATCH_MAX = 128;

/** Account status that an agent's actor is told. */
export type ToldActor = { readonly agentId: string } & Omit<AgentCommandOf<"follow_status">, "kind">;

export interface SubmitResult {
  /** Replies to the commands, in order. */
  readonly replies: readonly AgentReply[];
  /** State that the agent's record may not show yet; null if it shows everything. */
  readonly unrecorded: AgentSummary | null;
  /** State that the ledger may not have followed yet; null if there is none. */
  readonly unfollowed: { readonly agent: AgentProfile; readonly followed: FollowedAgent } | null;
}

export const STATE_QUERY = "state";
export type AgentStateView = AgentState;

export type { AgentCommand };
