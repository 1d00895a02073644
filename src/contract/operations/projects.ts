import { z } from "zod";
import { manages, reads } from "../access.ts";
import { CREATE_ERRORS } from "../creates.ts";
import { define } from "../define.ts";
import { color, description, idempotencyKey, logo, name, paging, uuid } from "../primitives.ts";
import { listOf, project } from "../records.ts";
import { stopsOf } from "../stops.ts";
import { creates, managementTool } from "../tools.ts";

const params = z.strictObject({ id: uuid });
const answer = z.strictObject({ project });

const named = { name, description: description.nullable().optional() };
const branding = { color: color.nullable().optional(), logo: logo.nullable().optional() };

export const createProject = define({
  summary: "Create a project",
  description:
    "Creates a container of teams. Repeating the request with the same idempotencyKey and payload answers 200 with " +
    "the same project; a different payload is 422. An organization key must send one and be bound to the " +
    "organization.",
  tag: "Projects",
  access: manages("projects:write", "newProject", { role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/projects", successStatus: 201 },
  body: z.strictObject({ ...named, ...branding, idempotencyKey: idempotencyKey.optional() }),
  output: answer,
  errors: CREATE_ERRORS,
});

export const createProjectByTool = define({
  summary: "Create a project",
  tag: "Projects",
  access: manages("projects:write", "newProject", { role: "admin" }),
  rate: "standard",
  tool: managementTool("create_project", "Create a project", creates),
  body: z.strictObject({ ...named, idempotencyKey: idempotencyKey.optional() }),
  output: answer,
  errors: CREATE_ERRORS,
});

export const listProjects = define({
  summary: "List projects",
  description:
    "The organization's projects, newest first, including archived ones. An organization key sees those in its " +
    "binding.",
  tag: "Projects",
  access: reads("projects:read", "list"),
  rate: "standard",
  http: { method: "get", path: "/v1/projects", successStatus: 200 },
  tool: managementTool("list_projects", "List projects"),
  query: z.strictObject({ ...paging, state: z.enum(["active", "archived"]).optional() }),
  output: listOf("projects", project),
  errors: ["BAD_CURSOR"],
});

export const getProject = define({
  summary: "Read a project",
  description: "Returns one project.",
  tag: "Projects",
  access: reads("projects:read", "project"),
  rate: "standard",
  http: { method: "get", path: "/v1/projects/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

export const updateProject = define({
  summary: "Change a project",
  description:
    "Changes name, description, color or logo. A field that is left out stays unchanged; null clears it.",
  tag: "Projects",
  access: manages("never", "project", { role: "admin" }),
  rate: "standard",
  http: { method: "patch", path: "/v1/projects/:id", successStatus: 200 },
  params,
  body: z.strictObject({ name: name.optional(), description: named.description, ...branding }),
  output: answer,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED"],
});

export const archiveProject = define({
  summary: "Archive a project",
  description:
    "Permanent, and only possible when every team in it is archived. Archiving it again is 200. The default project " +
    "can be archived like any other; new teams must then name their project.",
  tag: "Projects",
  access: manages("never", "project", { role: "admin", stepUp: true }),
  rate: "archive",
  http: { method: "delete", path: "/v1/projects/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND", "CONTAINER_NOT_EMPTY"],
});

export const {
  pauseAgents: pauseProjectAgents,
  revokeKeys: revokeProjectAgentKeys,
  stop: stopProject,
} = stopsOf("project");
