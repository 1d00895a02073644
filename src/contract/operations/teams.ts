import { z } from "zod";
import { manages, reads } from "../access.ts";
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
    "Creates a container of agents in the named project; if none is named, in the project that the key is bound to, " +
    "or else in the default project. The answer is 409 if that project is archived or has 1,000 teams that are not " +
    "archived. Repeating the request with the same idempotencyKey and payload answers 200 with the same team; a " +
    "different payload is 422. An organization key must send one and must not be bound to a team.",
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
  body: z.strictObject({ ...named, projectId: uuid.optional(), idempotencyKey: idempotencyKey.optional() }),
  output: answer,
  errors: [...CREATE_INSIDE_ERRORS, "TOO_MANY_TEAMS", "PROJECT_FULL"],
});

export const listTeams = define({
  summary: "List teams",
  description:
    "The organization's teams, newest first, including archived ones. An organization key sees those in its binding.",
  tag: "Teams",
  access: reads("teams:read", "list"),
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
  description: "Returns one team.",
  tag: "Teams",
  access: reads("teams:read", "team"),
  rate: "standard",
  http: { method: "get", path: "/v1/teams/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

export const updateTeam = define({
  summary: "Change a team",
  description:
    "Changes name, description, color or logo. A field that is left out stays unchanged; null clears it.",
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
  description: "Permanent, and only possible when every agent in it is archived. Archiving it again is 200.",
  tag: "Teams",
  access: manages("never", "team", { role: "admin", stepUp: true }),
  rate: "archive",
  http: { method: "delete", path: "/v1/teams/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND", "CONTAINER_NOT_EMPTY"],
});

export const {
  pauseAgents: pauseTeamAgents,
  revokeKeys: revokeTeamAgentKeys,
  stop: stopTeam,
} = stopsOf("team");
