import type { AgentDocument } from "../store/documents.ts";
import type { Result } from "../domain/result.ts";
import type { OrganizationScope } from "../contract/types.ts";
import type { OrganizationDocument } from "../store/identity-documents.ts";
import type { SessionPrincipal } from "./session-principal.ts";

/** A caller whose credential was verified. */
export type Principal = AgentPrincipal | ManagementPrincipal;

export interface AgentPrincipal {
  readonly type: "agent";
  readonly agent: AgentDocument;
  /** The key used. */
  readonly keyId: string;
  /** Missing if the agent's record was read for this request. */
  readonly cached?: CachedAgent;
}

/**
 * An agent as this process read it some seconds ago. Valid only for a payment: the ledger refuses the payment if the
 * agent has changed, and the agent has to be verified then.
 */
export interface CachedAgent {
  readonly revision: number;
  /** Verifies the key against the agent's current record. */
  readonly verify: () => Promise<Result<AgentPrincipal>>;
}

/** A caller who may manage an organization. */
export type ManagementPrincipal = SessionPrincipal | OrganizationKeyPrincipal;

/** The container in which an organization's key may act. */
export type KeyBinding =
  { readonly type: "organization" } | { readonly type: "project" | "team"; readonly id: string };

/** A machine of an organization, authenticated by its key, as read from the database for this request. */
export interface OrganizationKeyPrincipal {
  readonly type: "organization_key";
  readonly keyId: string;
  /** Id shared by a key and its successors by rotation. */
  readonly lineageId: string;
  readonly organizationId: string;
  readonly organization: OrganizationDocument;
  readonly scopes: readonly OrganizationScope[];
  readonly binding: KeyBinding;
  /** Maximum agents, projects and teams that the lineage may create per UTC day. */
  readonly dailyCreateLimit: number;
}
