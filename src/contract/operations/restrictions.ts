import { z } from "zod";
import { manages, reads } from "../access.ts";
import { define } from "../define.ts";
import { uuid } from "../primitives.ts";
import { restrictions } from "../restrictions.ts";

const params = z.strictObject({ id: uuid });

const READS =
  "The payments that are denied, whatever a person would say, with the `version` that a change must name.";
const REPLACES =
  "Replaces all restrictions. `only`: nothing else is allowed; null: no such list. `never`: denied even so. Of project, team and " +
  "agent each one's lists apply. Recipients are names, addresses and hosts (`host:api.example.com`), compared as approval rules " +
  "compare them; a purchase is allowed by its shop's host or by its payee, and denied by either. An outdated `version` is 409 " +
  "STALE_RESTRICTIONS. The restrictions apply to every payment after the answer, and to payments on hold when they are approved.";

export const getProjectRestrictions = define({
  summary: "Read a project's restrictions",
  description: READS,
  tag: "Projects",
  access: reads("projects:write", "project"),
  rate: "standard",
  http: { method: "get", path: "/v1/projects/:id/restrictions", successStatus: 200 },
  params,
  output: restrictions,
  errors: ["NOT_FOUND"],
});

export const setProjectRestrictions = define({
  summary: "Set a project's restrictions",
  description: REPLACES,
  tag: "Projects",
  access: manages("projects:write", "project", { role: "admin" }),
  rate: "standard",
  http: { method: "put", path: "/v1/projects/:id/restrictions", successStatus: 200 },
  params,
  body: restrictions,
  output: restrictions,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED", "STALE_RESTRICTIONS"],
});

export const getTeamRestrictions = define({
  summary: "Read a team's restrictions",
  description: READS,
  tag: "Teams",
  access: reads("teams:write", "team"),
  rate: "standard",
  http: { method: "get", path: "/v1/teams/:id/restrictions", successStatus: 200 },
  params,
  output: restrictions,
  errors: ["NOT_FOUND"],
});

export const setTeamRestrictions = define({
  summary: "Set a team's restrictions",
  description: REPLACES,
  tag: "Teams",
  access: manages("teams:write", "team", { role: "admin" }),
  rate: "standard",
  http: { method: "put", path: "/v1/teams/:id/restrictions", successStatus: 200 },
  params,
  body: restrictions,
  output: restrictions,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED", "STALE_RESTRICTIONS"],
});

export const getAgentRestrictions = define({
  summary: "Read an agent's restrictions",
  description: READS,
  tag: "Agents",
  access: reads("agents:write", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id/restrictions", successStatus: 200 },
  params,
  output: restrictions,
  errors: ["NOT_FOUND"],
});

export const setAgentRestrictions = define({
  summary: "Set an agent's restrictions",
  description: REPLACES,
  tag: "Agents",
  access: manages("agents:write", "agent", { role: "admin", stepUp: true }),
  rate: "standard",
  http: { method: "put", path: "/v1/agents/:id/restrictions", successStatus: 200 },
  params,
  body: restrictions,
  output: restrictions,
  errors: ["NOT_FOUND", "AGENT_ARCHIVED", "STALE_RESTRICTIONS"],
});
