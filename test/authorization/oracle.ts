import type { AgentTool } from "../../src/contract/tool-names.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import type { OrganizationScope, Role } from "../../src/contract/types.ts";
import type { Needs, Row } from "./access-table.ts";

/** A credential, as far as it matters to what it may do. */
export type Credential =
  | { readonly kind: "none" }
  | { readonly kind: "made up" }
  /** A token of OAuth, which is for MCP alone. */
  | { readonly kind: "connection" }
  | { readonly kind: "paused agent" }
  | { readonly kind: "agent"; readonly tools: readonly AgentTool[] | null }
  | { readonly kind: "organization key"; readonly scopes: readonly OrganizationScope[] }
  | { readonly kind: "session"; readonly role: Role; readonly steppedUp: boolean; readonly mustEnrol?: true };

const ROLES: readonly Role[] = ["auditor", "member", "admin", "owner"];

/**
 * What keeps a credential from an operation, in the order that callers are promised: credential → kind, scope or tool
 * → a second factor where one is required → role → step-up; null: nothing does. Written by hand, and of nothing of the service's.
 */
export function refusalOf(row: Row, credential: Credential, body: object): ErrorCode | null {
  if (row.who === "anyone") return null;
  switch (credential.kind) {
    case "none":
    case "made up":
    case "connection":
      return "UNAUTHORIZED";
    case "paused agent":
      return "AGENT_PAUSED";
    case "agent": {
      if (row.who !== "agent") return "WRONG_CREDENTIAL";
      const needed = variantOf(row.variants, body)?.tools ?? row.tools;
      const { tools } = credential;
      return tools === null || needed.some((tool) => tools.includes(tool)) ? null : "TOOL_NOT_ALLOWED";
    }
    case "organization key":
      if (row.who !== "management") return "WRONG_CREDENTIAL";
      if (row.scope === null) return "SESSION_REQUIRED";
      if (!credential.scopes.includes(row.scope)) return "INSUFFICIENT_SCOPE";
      return variantOf(row.variants, body)?.isForPeople === true ? "SESSION_REQUIRED" : null;
    case "session":
      if (row.who !== "management") return "WRONG_CREDENTIAL";
      if (credential.mustEnrol === true && row.beforeEnrolment !== true)
        return "SECOND_FACTOR_ENROLMENT_REQUIRED";
      if (credential.role === "auditor" && row.orAuditor === true) return null;
      return refusalOfPerson(
        [row, variantOf(row.variants, body) ?? row],
        credential.role,
        credential.steppedUp,
      );
  }
}

/** The operation's own needs first, then those of what the body asks for. */
function refusalOfPerson(needs: readonly Needs[], role: Role, steppedUp: boolean): ErrorCode | null {
  for (const need of needs) {
    if (ROLES.indexOf(role) < ROLES.indexOf(need.role)) return "ROLE_REQUIRED";
    if (need.stepUp && !steppedUp) return "STEP_UP_REQUIRED";
  }
  return null;
}

function variantOf<V extends { readonly body: object }>(variants: readonly V[] | undefined, body: object) {
  return variants?.find((variant) => variant.body === body);
}
