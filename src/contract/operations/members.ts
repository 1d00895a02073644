import { z } from "zod";
import { anyone, person, reads } from "../access.ts";
import { define } from "../define.ts";
import {
  email,
  idempotencyKey,
  name,
  newPassword,
  paging,
  secretToken,
  timestamp,
  uuid,
} from "../primitives.ts";
import { boundTo, listOf, session, user } from "../records.ts";
import type { ManagementAccess, PersonRequirements, Role } from "../types.ts";

const role = z.enum(["owner", "admin", "member", "auditor"]);
const params = z.strictObject({ id: uuid });

/** Maximum projects or teams to which one member can be bound. */
const BOUND_MAX = 20;

const memberBinding = z
  .discriminatedUnion("type", [
    z.strictObject({ type: z.literal("organization") }).meta({ title: "WholeOrganization" }),
    z
      .strictObject({ type: z.enum(["project", "team"]), ids: z.array(uuid).min(1).max(BOUND_MAX) })
      .meta({ title: "SomeContainers" }),
  ])
  .meta({ title: "MemberBinding" });

/** Whether organization keys outlive their creator's membership. */
const leaving = z.strictObject({ keepKeys: z.enum(["true", "false"]).optional() });

const inviteId = z.string().regex(/^inv_[0-9A-HJKMNP-TV-Z]{26}$/);

const invite = z
  .strictObject({
    id: z.string(),
    email: z.string(),
    role,
    binding: boundTo,
    delivery: z.enum(["link", "mailing", "mailed", "refused"]),
    createdBy: z.strictObject({ type: z.literal("user"), id: uuid }),
    createdAt: timestamp,
    expiresAt: timestamp,
  })
  .meta({ id: "Invite" });

/** Owners and admins act in the whole organization, and auditors read all of it. */
const onlyMembersAreBound = { path: ["binding"], error: "can be given to members only" };
interface GivenRights {
  readonly role: Role;
  readonly binding?: z.output<typeof memberBinding> | undefined;
}

const canBeBound = (given: GivenRights): boolean =>
  given.role === "member" || given.binding === undefined || given.binding.type === "organization";

const rank = z.object({ role });

/** Only an owner may invite owners; inviting an admin or owner needs a step-up. */
function inviteRequirements(body: unknown): PersonRequirements | null {
  const parsed = rank.safeParse(body);
  if (!parsed.success || parsed.data.role === "member" || parsed.data.role === "auditor") return null;
  return { role: parsed.data.role === "owner" ? "owner" : "admin", stepUp: true };
}

function roleChangeRequirements(body: unknown): PersonRequirements | null {
  const parsed = rank.safeParse(body);
  return parsed.success && parsed.data.role === "owner" ? { role: "owner", stepUp: true } : null;
}

const invites: ManagementAccess<"never", "none"> = {
  ...person({ role: "admin" }),
  requirementsOf: inviteRequirements,
};
const changesRoles: ManagementAccess<"never", "none"> = {
  ...person({ role: "admin", stepUp: true }),
  requirementsOf: roleChangeRequirements,
};

export const listMembers = define({
  summary: "List members",
  description: "The people of the organization with their roles, newest first.",
  tag: "Members",
  access: reads("never", "organization"),
  rate: "standard",
  http: { method: "get", path: "/v1/members", successStatus: 200 },
  query: z.strictObject({ ...paging }),
  output: listOf("members", user),
  errors: ["BAD_CURSOR"],
});

export const updateMember = define({
  summary: "Change a member's role",
  description:
    "The new role and binding apply to open sessions at once. A `binding` that is left out stays; only a member can have " +
    "one. Only an owner makes or demotes owners; the last owner cannot be " +
    "demoted. The organization keys that a person created or rotated last are revoked at once when that person " +
    "becomes a member or auditor, and named in the answer, unless `keepKeys=true`.",
  tag: "Members",
  access: changesRoles,
  rate: "standard",
  http: { method: "patch", path: "/v1/members/:id", successStatus: 200 },
  params,
  query: leaving,
  body: z.strictObject({ role, binding: memberBinding.optional() }).refine(canBeBound, onlyMembersAreBound),
  output: z.strictObject({
    member: user,
    revokedOrganizationKeys: z.array(z.strictObject({ id: z.string(), name: z.string(), last4: z.string() })),
  }),
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED", "LAST_OWNER"],
});

export const removeMember = define({
  summary: "Remove a member",
  description:
    "Ends the person's sessions and second factors at once and revokes the organization keys that the person created " +
    "or rotated last, unless `keepKeys=true`; the audit log names them. Only an owner removes owners; the last owner " +
    "cannot be removed.",
  tag: "Members",
  access: person({ role: "admin", stepUp: true }),
  rate: "standard",
  http: { method: "delete", path: "/v1/members/:id", successStatus: 204 },
  params,
  query: leaving,
  output: z.undefined(),
  errors: ["NOT_FOUND", "LAST_OWNER"],
});

export const createInvite = define({
  summary: "Invite a person",
  description:
    "The invite is valid for 7 days. A member can be bound to up to 20 projects or teams by `binding`. If the service has a mail server, it mails the link and `token` is null; " +
    "accepting the invite then proves that the address belongs to the person. Otherwise `token` is answered once, " +
    "and you pass on the link `/invite#token=…`. A new invite to the same e-mail replaces an open one and is mailed " +
    "again. At most 50 invites are mailed in an hour, and 5 in a UTC day to one address; beyond that the answer is " +
    "429. Inviting an owner or admin needs step-up; only an owner, with step-up, creates or replaces an owner's " +
    "invite. For a day, repeating the request with the same idempotencyKey and payload answers 200 with the first " +
    "answer and mails nothing; a different payload is 422.",
  tag: "Members",
  access: invites,
  rate: "standard",
  http: { method: "post", path: "/v1/invites", successStatus: 201 },
  body: z
    .strictObject({
      email,
      role,
      binding: memberBinding.optional(),
      idempotencyKey: idempotencyKey.optional(),
    })
    .refine(canBeBound, onlyMembersAreBound),
  output: z.strictObject({ invite, token: z.string().nullable() }),
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED", "IDEMPOTENCY_KEY_REUSED"],
});

export const listInvites = define({
  summary: "List open invites",
  description:
    "The invites that can still be accepted, newest first, without their tokens. `delivery` is the state of the " +
    "mail. If the address was refused, revoke the invite and invite another address.",
  tag: "Members",
  access: reads("never", "organization"),
  rate: "standard",
  http: { method: "get", path: "/v1/invites", successStatus: 200 },
  query: z.strictObject({ ...paging }),
  output: listOf("invites", invite),
  errors: ["BAD_CURSOR"],
});

export const revokeInvite = define({
  summary: "Revoke an invite",
  description: "Its token can no longer be used. Only an owner, with step-up, can revoke an owner's invite.",
  tag: "Members",
  access: person({ role: "admin" }),
  rate: "standard",
  http: { method: "delete", path: "/v1/invites/:id", successStatus: 200 },
  params: z.strictObject({ id: inviteId }),
  output: z.strictObject({ invite }),
  errors: ["NOT_FOUND", "STEP_UP_REQUIRED"],
});

export const checkInvite = define({
  summary: "Check an invite",
  description:
    "Who invites to which organization, without using the token. A used, revoked, expired or unknown token is 404.",
  tag: "Members",
  access: anyone,
  rate: "standard",
  http: { method: "post", path: "/v1/invites/check", successStatus: 200 },
  body: z.strictObject({ token: secretToken }),
  output: z.strictObject({
    organizationName: z.string(),
    inviterName: z.string().meta({ description: "Name of the person who invites." }),
    email: z.string(),
    role,
    identityProvider: z.boolean().meta({
      description: "Whether the organization has an identity provider, by which the person can join, too.",
    }),
  }),
  errors: ["NOT_FOUND"],
});

export const acceptInvite = define({
  summary: "Accept an invite",
  description:
    "Makes the invited person a member and signs them in. A used, revoked, expired or unknown token is 404.",
  tag: "Members",
  access: anyone,
  rate: "password",
  http: { method: "post", path: "/v1/invites/accept", successStatus: 201 },
  body: z.strictObject({ token: secretToken, name, password: newPassword }),
  output: session,
  errors: ["NOT_FOUND", "UNAUTHORIZED", "SSO_REQUIRED"],
});
