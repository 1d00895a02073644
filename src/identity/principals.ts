import type { AgentDocument } from "../store/documents.ts";
import type { Result } from "../domain/result.ts";
import type { OrganizationScope } from "../contract/types.ts";
import type { OrganizationDocument } from "../store/identity-documents.ts";
import type { SessionPrincipal } from "./session-principal.ts";

/** Caller, once the credential was verified. */
export type Principal = AgentPrincipal | ManagementPrincipal;

/** An agent, by its key. */
export interface AgentPrincipal {
  readonly type: "agent";
  readonly agent: AgentDocument;
  /** The key that it came with. */
  readonly keyId: string;
  /** Left out where the agent's record was read for this request. */
  readonly cached?: CachedAgent;
}

/**
 * The agent as this process read it some seconds ago. Good for nothing but a payment: its ledger refuses it where the agent has changed,
 * and then it has to be verified.
 */
export interface CachedAgent {
  readonly revision: number;
  /** Verifies the key by the agent's record as it is now. */
  readonly verify: () => Promise<Result<AgentPrincipal>>;
}

/** Caller who may manage an organization. */
export type ManagementPrincipal = SessionPrincipal | OrganizationKeyPrincipal;

/** The container that an organization's key may act in. */
export type KeyBinding =
  { readonly type: "organization" } | { readonly type: "project" | "team"; readonly id: string };

/** A machine of an organization, by its key, as the database has it at this request. */
export interface OrganizationKeyPrincipal {
  readonly type: "organization_key";
  readonly keyId: string;
  /** Id shared by a key and those that it was rotated into. */
  readonly lineageId: string;
  readonly organizationId: string;
  readonly organization: OrganizationDocument;
  readonly scopes: readonly OrganizationScope[];
  readonly binding: KeyBinding;
  /** Agents, projects and teams that the lineage may create in a UTC day. */
  readonly dailyCreateLimit: number;
}
