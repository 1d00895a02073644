import type { LifecycleEvent } from "../events.ts";
import { type AgentAccess, type FirstKey, initialAccess } from "./access.ts";

export type AgentLifecycle = "active" | "paused" | "archived";

/** An agent's organization, project, team and name; copied into its records and those of its payments. */
export interface AgentProfile {
  readonly organizationId: string;
  readonly projectId: string;
  readonly teamId: string;
  readonly agentId: string;
  readonly name: string;
}

export type AgentRef = Pick<AgentProfile, "organizationId" | "agentId">;

/**
 * State of an agent's lifecycle in its actor: name, keys and archival. Its project's ledger decides on its money and
 * whether it is paused. Plain data, since it is carried over continue-as-new as JSON; only `handle` changes it.
 */
export interface AgentState {
  schemaVersion: 1;
  profile: AgentProfile;
  access: AgentAccess;
  /** Status as the ledger stated it at `statusRevision`. */
  status: "active" | "paused";
  statusRevision: number;
  archivedAt: number | null;
  /** Whether the service can no longer spend from the archived agent's wallet. */
  walletDetached: boolean;
  /** Raised by every lifecycle change that the agent's record shows. */
  revision: number;
  /** Newest revision that the record is known to show. */
  confirmedRevision: number;
  /** Revision of the last change of name, key or archival, and the newest one that the ledger is known to follow. */
  ledgerRevision: number;
  followedRevision: number;
  updatedAt: number;
  /** Events that are not known to be in the journal. */
  outbox: LifecycleEvent[];
}

export const initialAgentState = (profile: AgentProfile, firstKey: FirstKey, now: number): AgentState => ({
  schemaVersion: 1,
  profile,
  access: initialAccess(firstKey),
  status: "active",
  statusRevision: 0,
  archivedAt: null,
  walletDetached: false,
  // The create writes the agent's first record and opens its account.
  revision: 1,
  confirmedRevision: 1,
  ledgerRevision: 1,
  followedRevision: 1,
  updatedAt: now,
  outbox: [],
});

export const lifecycleOf = ({ archivedAt, status }: AgentState): AgentLifecycle =>
  archivedAt === null ? status : "archived";

/** The part of an agent's record that its actor decides; written under its revision. */
export interface AgentSummary {
  readonly agentId: string;
  readonly name: string;
  readonly archivedAt: number | null;
  readonly walletDetached: boolean;
  /** Id of the active key; null for none. */
  readonly keyId: string | null;
  readonly authenticatedAt: number | null;
  readonly revision: number;
  readonly updatedAt: number;
  /** Events for the journal; repeated until the record of this revision is confirmed. */
  readonly events: readonly LifecycleEvent[];
}

export const summarize = (state: AgentState): AgentSummary => ({
  agentId: state.profile.agentId,
  name: state.profile.name,
  archivedAt: state.archivedAt,
  walletDetached: state.walletDetached,
  keyId: state.access.activeKeyId,
  authenticatedAt: state.access.authenticatedAt,
  revision: state.revision,
  updatedAt: state.updatedAt,
  events: state.outbox,
});

/** State that the ledger follows from the agent's actor. */
export interface FollowedAgent {
  readonly revision: number;
  readonly name: string;
  /** The one key that may pay; null for none. */
  readonly keyId: string | null;
  /** Whether the account is closed for good. */
  readonly isArchived: boolean;
}

export const followedOf = ({ access, archivedAt, profile, revision }: AgentState): FollowedAgent => ({
  revision,
  name: profile.name,
  keyId: access.activeKeyId,
  isArchived: archivedAt !== null,
});

/** Whether the ledger has not confirmed the newest revision yet. */
export const isUnfollowed = ({ followedRevision, ledgerRevision }: AgentState): boolean =>
  followedRevision < ledgerRevision;

/** Whether nothing of an archived agent is left to do, since its records answer for it. */
export const isFinished = (state: AgentState): boolean =>
  state.archivedAt !== null &&
  state.walletDetached &&
  !isUnfollowed(state) &&
  state.confirmedRevision >= state.revision &&
  state.access.bundled.erased;
