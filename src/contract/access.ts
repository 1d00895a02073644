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

/** An agent's key that is scoped to one of these tools. */
export const agentWith = (...tools: AgentAccess["tools"]): AgentAccess => ({ kind: "agent", tools });

/**
 * A person, and an organization's key with that scope. People need no more than to be members, and no step-up, unless
 * it is said.
 */
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

/** A read, for everybody of the organization and for an organization's key with that scope. */
export const reads = <K extends OrganizationScope | "never", S extends ResourceKind>(
  organizationKey: K,
  subject: S,
): ManagementAccess<K, S> => manages(organizationKey, subject, { role: "auditor" });

/** A person about themselves and their organization; never a key. */
export const person = (requirements: Partial<PersonRequirements> = {}): ManagementAccess<"never", "none"> =>
  manages("never", "none", requirements);

/** A person about their own account, also before they have enrolled the second factor that their organization requires. */
export const ownAccount: ManagementAccess<"never", "none"> = {
  ...reads("never", "none"),
  beforeEnrolment: true,
};
