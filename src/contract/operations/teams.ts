import { z } from "zod";
import { manages } from "../access.ts";
import { CREATE_INSIDE_ERRORS } from "../creates.ts";
import { define } from "../define.ts";
import { color, description, idempotencyKey, logo, name, paging, uuid } from "../primitives.ts";
import { listOf, team } from "../records.ts";
import { stopsOf } from "../stops.ts";
import { creates, managementTool } from "../tools.ts";

const params = z.strictObject({ id: uuid });
const answer = z.strictObject({ team });

const named = { name, description: description.nullable().optional() };
const branding = { color: color.nullable().optional(), logo: logo.nullable().optional() };

export const createTeam = define({
  summary: "Create a team",
  description:
    "A container of agents, in the named project, by default that of a key bound to one, or else the default project; " +
    "409 where that one is archived or has 1,000 live teams. " +
    "Replaying the same idempotencyKey with the same payload answers 200 with the same team; " +
    "another payload is 422. A key of the organization must send one and not be bound to a team.",
  tag: "Teams",
  access: manages("teams:write", "newTeam", { role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/teams", successStatus: 201 },
  body: z.strictObject({
    ...named,
    ...branding,
    projectId: uuid.optional(),
    idempotencyKey: idempotencyKey.optional(),
  }),
  output: answer,
  errors: [...CREATE_INSIDE_ERRORS, "TOO_MANY_TEAMS", "PROJECT_FULL"],
});

export const createTeamByTool = define({
  summary: "Create a team",
  tag: "Teams",
  access: manages("teams:write", "newTeam", { role: "admin" }),
  rate: "standard",
  tool: managementTool("create_team", "Create a team", creates),
  body: z.strictObject({ ...named, idempotencyKey: idempotencyKey.optional() }),
  output: answer,
  errors: [...CREATE_INSIDE_ERRORS, "TOO_MANY_TEAMS", "PROJECT_FULL"],
});

export const listTeams = define({
  summary: "List teams",
  description: "Newest first, including archived ones; for a key, those within its binding.",
  tag: "Teams",
  access: manages("teams:read", "list"),
  rate: "standard",
  http: { method: "get", path: "/v1/teams", successStatus: 200 },
  tool: managementTool("list_teams", "List teams"),
  query: z.strictObject({
    ...paging,
    projectId: uuid.optional(),
    state: z.enum(["active", "archived"]).optional(),
  }),
  output: listOf("teams", team),
  errors: ["BAD_CURSOR"],
});

export const getTeam = define({
  summary: "Read a team",
  description: "One team's record.",
  tag: "Teams",
  access: manages("teams:read", "team"),
  rate: "standard",
  http: { method: "get", path: "/v1/teams/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

export const updateTeam = define({
  summary: "Change a team",
  description:
    "Name, description, color or logo; fields that are left out stay unchanged, null clears a field.",
  tag: "Teams",
  access: manages("never", "team", { role: "admin" }),
  rate: "standard",
  http: { method: "patch", path: "/v1/teams/:id", successStatus: 200 },
  params,
  body: z.strictObject({ name: name.optional(), description: named.description, ...branding }),
  output: answer,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED"],
});

export const archiveTeam = define({
  summary: "Archive a team",
  description: "Permanent; only possible when no agent in it is active. Archiving it again is 200.",
  tag: "Teams",
  access: manages("never", "team", { role: "admin", stepUp: true }),
  rate: "archive",
  http: { method: "delete", path: "/v1/teams/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND", "CONTAINER_NOT_EMPTY"],
});

export const { pauseAgents: pauseTeamAgents, revokeKeys: revokeTeamAgentKeys } = stopsOf("team");
