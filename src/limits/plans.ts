import { PLAN_LIMITS } from "../contract/rate-classes.ts";
import type { OrganizationDocument } from "../store/identity-documents.ts";

/** Requests over REST and over MCP are counted separately. */
export type Surface = "rest" | "mcp";

/** Requests per minute of one credential. */
export type PlanLimits = Readonly<Record<Surface, number>>;

/** Returns an organization's limits: its plan's, or an enterprise plan's custom ones. */
export function limitsOf({ plan, restPerMinute, mcpPerMinute }: OrganizationDocument): PlanLimits {
  const limits = PLAN_LIMITS[plan];
  if (plan !== "enterprise") return limits;
  return { rest: restPerMinute ?? limits.rest, mcp: mcpPerMinute ?? limits.mcp };
}
