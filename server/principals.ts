import type { AgentDocument } from "../activities/documents.ts";
import type { SessionPrincipal } from "./auth/principal.ts";

/** Who is calling, once the credential was verified. */
export type Principal = AgentPrincipal | SessionPrincipal;

/** An agent, by its key. */
export interface AgentPrincipal {
  readonly type: "agent";
  readonly agent: AgentDocument;
}

/** Who may manage an organization. Organization keys join here. */
export type ManagementPrincipal = SessionPrincipal;
