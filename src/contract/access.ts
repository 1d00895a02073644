import type {
  AgentAccess,
  ManagementAccess,
  OrganizationScope,
  PersonRequirements,
  PublicAccess,
  ResourceKind,
} from "./types.ts";

/** Forms of access to an operation. */

export const anyone: PublicAccess = { kind: "public" };

/** Access for an agent's key that is scoped to one of these tools. */
export const agentWith = (...tools: AgentAccess["tools"]): AgentAccess => ({ kind: "agent", tools });

/** Access for a person and for a key with that scope. By default any member may, without a step-up. */
export const manages = <K extends OrganizationScope | "never", S extends ResourceKind>(
  organizationKey: K,
  subject: S,
  requirements: Partial<PersonRequirements> = {},
): ManagementAccess<K, S> => ({
  kind: "management",
  organizationKey,
  subject,
  role: "member",
  stepUp: false,
  ...requirements,
});

/** Read access for everybody in the organization, and for an organization's key with that scope. */
export const reads = <K extends OrganizationScope | "never", S extends ResourceKind>(
  organizationKey: K,
  subject: S,
): ManagementAccess<K, S> => manages(organizationKey, subject, { role: "auditor" });

/** Access for a person to their own matters and their organization; never for a key. */
export const person = (requirements: Partial<PersonRequirements> = {}): ManagementAccess<"never", "none"> =>
  manages("never", "none", requirements);

/**
 * Access for a person to their own account, even before enrolling the second factor that their organization requires.
 */
export const ownAccount: ManagementAccess<"never", "none"> = {
  ...reads("never", "none"),
  beforeEnrolment: true,
};
