import type { Access, Role } from "../src/contract/types.ts";
import type { Refusal } from "../src/domain/errors.ts";
import { refusal } from "../src/domain/errors.ts";
import { isSteppedUp } from "./auth/principal.ts";
import type { AgentPrincipal, Principal } from "./principals.ts";

const RANK: Readonly<Record<Role, number>> = { member: 0, admin: 1, owner: 2 };

/**
 * Whether the caller may do this at all, before anything of the request is looked at: kind of credential, tool,
 * role, step-up, in the order of decisions.md section 1. The one place that enforces an operation's `access`.
 */
export function authorize(access: Access, principal: Principal | null, now: Date): Refusal | null {
  if (access.kind === "public") return null;
  if (principal === null) return refusal("UNAUTHORIZED");
  if (access.kind === "agent") {
    if (principal.type !== "agent") return refusal("WRONG_CREDENTIAL");
    return access.tools.some((tool) => mayUse(principal, tool)) ? null : refusal("TOOL_NOT_ALLOWED");
  }
  if (principal.type === "agent") return refusal("WRONG_CREDENTIAL");
  if (RANK[principal.role] < RANK[access.role]) return refusal("ROLE_REQUIRED");
  return access.stepUp && !isSteppedUp(principal, now) ? refusal("STEP_UP_REQUIRED") : null;
}

/** The same for a tool that only the body names (POST by rail); still before its shape is looked at. */
export function authorizeBody(access: Access, principal: Principal | null, body: unknown): Refusal | null {
  if (access.kind !== "agent" || principal?.type !== "agent") return null;
  const tool = access.toolOf?.(body) ?? null;
  return tool === null || mayUse(principal, tool) ? null : refusal("TOOL_NOT_ALLOWED");
}

/** Whether an agent's key is scoped to a tool; one without scopes has the full set. */
export function mayUse({ agent }: AgentPrincipal, tool: string): boolean {
  return agent.scopes === null || agent.scopes.includes(tool);
}
