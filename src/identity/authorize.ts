import type { Access, ManagementAccess, PersonRequirements } from "../contract/types.ts";
import { outranks } from "../domain/roles.ts";
import type { Refusal } from "../domain/errors.ts";
import { refusal } from "../domain/errors.ts";
import type { SessionPrincipal } from "./session-principal.ts";
import { isSteppedUp } from "./session-principal.ts";
import type { AgentPrincipal, OrganizationKeyPrincipal, Principal } from "./principals.ts";

/**
 * Checks whether the caller may perform the operation at all, before the request is validated. Checks, in this order:
 * kind of credential, scope or tool, required second factor, role, step-up. Together with `authorizeBody` this is the
 * only place that enforces an operation's `access`; `findSubject` finds the subject.
 */
export function authorize(access: Access, principal: Principal | null, now: Date): Refusal | null {
  if (access.kind === "public") return null;
  if (principal === null) return refusal("UNAUTHORIZED");
  if (access.kind === "agent") {
    if (principal.type !== "agent") return refusal("WRONG_CREDENTIAL");
    return access.tools.some((tool) => mayUse(principal, tool)) ? null : refusal("TOOL_NOT_ALLOWED");
  }
  switch (principal.type) {
    case "agent":
      return refusal("WRONG_CREDENTIAL");
    case "organization_key":
      return authorizeKey(access, principal);
    case "session":
      if (principal.mustEnrol && access.beforeEnrolment !== true)
        return refusal("SECOND_FACTOR_ENROLMENT_REQUIRED");
      if (access.orAuditor === true && principal.role === "auditor") return null;
      return authorizePerson(access, principal, now);
  }
}

/** Authorizes by what only the body says, such as a payment's rail or an invite's role, before it is validated. */
export function authorizeBody(
  access: Access,
  principal: Principal | null,
  body: unknown,
  now: Date,
): Refusal | null {
  if (access.kind === "agent" && principal?.type === "agent") {
    const tool = access.toolOf?.(body) ?? null;
    return tool === null || mayUse(principal, tool) ? null : refusal("TOOL_NOT_ALLOWED");
  }
  if (access.kind !== "management" || principal === null || principal.type === "agent") return null;
  const requirements = access.requirementsOf?.(body) ?? null;
  if (requirements === null) return null;
  // A key has no role and never steps up.
  if (principal.type === "organization_key") return refusal("SESSION_REQUIRED");
  return authorizePerson(requirements, principal, now);
}

/** Authorizes an organization's key: no human is behind it, so it has scopes, not roles, and is never challenged. */
function authorizeKey(access: ManagementAccess, { scopes }: OrganizationKeyPrincipal): Refusal | null {
  const { organizationKey: requiredScope } = access;
  if (requiredScope === "never") return refusal("SESSION_REQUIRED");
  if (scopes.includes(requiredScope)) return null;
  return refusal("INSUFFICIENT_SCOPE", undefined, { requiredScope });
}

function authorizePerson(
  requirements: PersonRequirements,
  principal: SessionPrincipal,
  now: Date,
): Refusal | null {
  if (outranks(requirements.role, principal.role)) return refusal("ROLE_REQUIRED");
  return requirements.stepUp && !isSteppedUp(principal, now) ? refusal("STEP_UP_REQUIRED") : null;
}

/**
 * Whether an agent's key may use a tool. A key without scopes may use all of them; a connection may be limited further.
 */
export function mayUse({ agent: { key, scopes } }: AgentPrincipal, tool: string): boolean {
  const connected = key?.connection?.tools ?? null;
  return (scopes === null || scopes.includes(tool)) && (connected === null || connected.includes(tool));
}
