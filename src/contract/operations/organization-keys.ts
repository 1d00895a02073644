import { z } from "zod";
import { person } from "../access.ts";
import { define } from "../define.ts";
import { choices, name, paging, timestamp, uuid } from "../primitives.ts";
import { listOf } from "../records.ts";
import { ORGANIZATION_SCOPES } from "../types.ts";

const DAILY_CREATE_LIMIT = { default: 100, max: 1_000 } as const;

const scope = z.enum(ORGANIZATION_SCOPES).meta({ title: "OrganizationScope" });
const params = z.strictObject({ id: z.string().regex(/^okey_[0-9A-HJKMNP-TV-Z]{26}$/) });

const organizationKey = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    last4: z.string(),
    scopes: z.array(scope),
    binding: z.strictObject({ type: z.enum(["organization", "project", "team"]), id: uuid.optional() }),
    dailyCreateLimit: z.int(),
    createdToday: z
      .int()
      .meta({ description: "Agents, projects and teams that its lineage created in this UTC day." }),
    lineageId: z.string(),
    createdBy: z.strictObject({ type: z.literal("user"), id: uuid }),
    createdAt: timestamp,
    lastUsedAt: timestamp.nullable(),
    rotatedAt: timestamp.nullable(),
    revokedAt: timestamp.nullable(),
  })
  .meta({ id: "OrganizationKey" });

const withValue = z.strictObject({ organizationKey, key: z.string() });

export const mintOrganizationKey = define({
  summary: "Create an organization key",
  description:
    "Creates a credential for an orchestrator and shows its value once. Its scopes, binding and daily create limit " +
    "cannot be changed.",
  tag: "Organization keys",
  access: person({ role: "admin", stepUp: true }),
  rate: "keyMint",
  http: { method: "post", path: "/v1/organization-keys", successStatus: 201 },
  body: z.strictObject({
    name,
    scopes: choices(ORGANIZATION_SCOPES, "OrganizationScope"),
    binding: z
      .discriminatedUnion("type", [
        z.strictObject({ type: z.literal("organization") }).meta({ title: "OrganizationBinding" }),
        z.strictObject({ type: z.enum(["project", "team"]), id: uuid }).meta({ title: "ContainerBinding" }),
      ])
      .meta({ title: "KeyBinding" }),
    dailyCreateLimit: z.int().min(1).max(DAILY_CREATE_LIMIT.max).default(DAILY_CREATE_LIMIT.default),
  }),
  output: withValue,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED"],
});

export const listOrganizationKeys = define({
  summary: "List organization keys",
  description:
    "The organization's keys, newest first, including rotated and revoked ones, without their values.",
  tag: "Organization keys",
  access: person({ role: "admin" }),
  rate: "standard",
  http: { method: "get", path: "/v1/organization-keys", successStatus: 200 },
  query: z.strictObject({ ...paging }),
  output: listOf("organizationKeys", organizationKey),
  errors: ["BAD_CURSOR"],
});

export const rotateOrganizationKey = define({
  summary: "Rotate an organization key",
  description:
    "Replaces the key's value; lineage, scopes, binding and limit stay. The old value is refused at once, and " +
    "today's creates still count. A key that was already rotated or revoked is 404.",
  tag: "Organization keys",
  access: person({ role: "admin", stepUp: true }),
  rate: "keyMint",
  http: { method: "post", path: "/v1/organization-keys/:id/rotate", successStatus: 201 },
  params,
  output: withValue,
  errors: ["NOT_FOUND"],
});

export const revokeOrganizationKey = define({
  summary: "Revoke an organization key",
  description:
    "The key is refused from its next request on. Revoking it again is 200. A key that was rotated is 404: revoke " +
    "its successor.",
  tag: "Organization keys",
  access: person({ role: "admin", stepUp: true }),
  rate: "keyRevoke",
  http: { method: "delete", path: "/v1/organization-keys/:id", successStatus: 200 },
  params,
  output: z.strictObject({ organizationKey }),
  errors: ["NOT_FOUND"],
});
