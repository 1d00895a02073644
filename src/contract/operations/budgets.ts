import { z } from "zod";
import { manages, reads } from "../access.ts";
import { define } from "../define.ts";
import { cents, uuid, version } from "../primitives.ts";
import { increases, spendLimitsAsRead, usedSpendLimits } from "../spend-limits.ts";
import { changes, managementTool } from "../tools.ts";

const params = z.strictObject({ id: uuid });

/** Maximum children named by one request: a project has no more live agents. */
const CHILDREN_MAX = 10_000;

const capCents = cents.nullable().meta({
  description: "What all agents together may reserve and spend; null: no cap. Required.",
});

/** A sum over agents may exceed the maximum of one amount. */
const sumCents = z.int().min(0);

const usage = z.strictObject({
  spentCents: sumCents,
  reservedCents: sumCents,
  remainingCents: cents.nullable().meta({ description: "Null where there is no cap; never negative." }),
  increases,
});

const teamCap = z.strictObject({ teamId: uuid, capCents });
const agentBudget = z.strictObject({ agentId: uuid, budgetCents: cents });

/** Omitted limits stay, so that clients that do not know them do not remove them. */
const limits = { spendLimits: spendLimitsAsRead.optional() };

const projectBudget = z.strictObject({
  capCents,
  ...limits,
  teams: z.array(teamCap).max(CHILDREN_MAX),
  version,
});
const teamBudget = z.strictObject({
  capCents,
  ...limits,
  agents: z.array(agentBudget).max(CHILDREN_MAX),
  version,
});

const projectBudgetAnswer = projectBudget
  .extend({ teams: z.array(teamCap), spendLimits: usedSpendLimits, usage })
  .meta({ id: "ProjectBudget" });
const teamBudgetAnswer = teamBudget
  .extend({ agents: z.array(agentBudget), spendLimits: usedSpendLimits, usage })
  .meta({ id: "TeamBudget" });

const REPLACE_ERRORS = [
  "NOT_FOUND",
  "CONTAINER_ARCHIVED",
  "STALE_BUDGET",
  "BUDGET_CHILDREN_INCOMPLETE",
  "BUDGET_CHILD_UNKNOWN",
] as const;

const REPLACES =
  "Replaces the whole budget, or nothing: 409 STALE_BUDGET if its cap, or a child's cap or budget, has changed since " +
  "`version` was read. `capCents` null removes the cap; `spendLimits` left out stay, and [] removes them; every child that is not archived must be named. A cap below " +
  "what is already used is accepted and stops further payments. The budget is in force once the request is answered. " +
  "A request that takes too long is 503, and its change may still be made: read the budget again before you retry. ";

export const getProjectBudget = define({
  summary: "Read a project's budget",
  description:
    "The project's cap, the caps of its teams that are not archived, the usage, and the `version` that a change must " +
    "name.",
  tag: "Projects",
  access: reads("projects:write", "project"),
  waitsFor: "propagation",
  rate: "standard",
  http: { method: "get", path: "/v1/projects/:id/budget", successStatus: 200 },
  tool: managementTool("get_project_budget", "Read a project's budget", { idName: "projectId" }),
  params,
  output: projectBudgetAnswer,
  errors: ["NOT_FOUND"],
});

export const setProjectBudget = define({
  summary: "Replace a project's budget",
  description: `${REPLACES}A team's cap that changes raises the team's own \`version\`.`,
  tag: "Projects",
  access: manages("projects:write", "project", { role: "admin" }),
  waitsFor: "propagation",
  rate: "standard",
  http: { method: "put", path: "/v1/projects/:id/budget", successStatus: 200 },
  tool: managementTool("set_project_budget", "Replace a project's budget", {
    idName: "projectId",
    hints: changes,
  }),
  params,
  body: projectBudget,
  output: projectBudgetAnswer,
  errors: REPLACE_ERRORS,
});

export const getTeamBudget = define({
  summary: "Read a team's budget",
  description:
    "The team's cap, the budgets of its agents that are not archived, the usage, and the `version` that a change " +
    "must name.",
  tag: "Teams",
  access: reads("teams:write", "team"),
  waitsFor: "propagation",
  rate: "standard",
  http: { method: "get", path: "/v1/teams/:id/budget", successStatus: 200 },
  tool: managementTool("get_team_budget", "Read a team's budget", { idName: "teamId" }),
  params,
  output: teamBudgetAnswer,
  errors: ["NOT_FOUND"],
});

export const setTeamBudget = define({
  summary: "Replace a team's budget",
  description: `${REPLACES}An agent's budget that changes raises its policy's \`version\`; step-up is not required.`,
  tag: "Teams",
  access: manages("teams:write", "team", { role: "admin" }),
  waitsFor: "propagation",
  rate: "standard",
  http: { method: "put", path: "/v1/teams/:id/budget", successStatus: 200 },
  tool: managementTool("set_team_budget", "Replace a team's budget", { idName: "teamId", hints: changes }),
  bodySize: "large",
  params,
  body: teamBudget,
  output: teamBudgetAnswer,
  errors: REPLACE_ERRORS,
});
