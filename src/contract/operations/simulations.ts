import { z } from "zod";
import { manages } from "../access.ts";
import { rulesAsSent } from "../approval-rules.ts";
import { define } from "../define.ts";
import { uuid } from "../primitives.ts";
import { restrictions } from "../restrictions.ts";
import { range, simulation } from "../simulations.ts";
import { updateAgentBudgetPolicy } from "./agents.ts";
import { setProjectBudget, setTeamBudget } from "./budgets.ts";
import { setProjectCalendar } from "./calendar.ts";

const params = z.strictObject({ id: uuid });

/** The body of a write without its version, with the range. */
const withRange = <S extends z.core.$ZodLooseShape>(fields: S) => z.strictObject({ ...fields, range });
const withoutVersion = <S extends { readonly version: z.ZodType }>({ version: _version, ...fields }: S) =>
  fields;

const lists = withRange(withoutVersion(restrictions.shape));
const rules = withRange({ rules: rulesAsSent });

/** Fields shared by all simulations. Nothing is changed, so no step-up is required. */
const SIMULATES = {
  description:
    "Judges the payments of the last `range` days once more, as if this had been in force, and answers which would have been " +
    "approved, held or denied otherwise. Nothing is changed. The body is that of the write without `version`. One simulation of an " +
    "organization runs at a time on a server; another is 429 SIMULATION_RUNNING. At most the newest 100,000 payments are judged.",
  waitsFor: "simulation",
  rate: "standard",
  output: simulation,
  errors: ["NOT_FOUND", "SIMULATION_RUNNING"],
} as const;

const ofAgent = {
  ...SIMULATES,
  tag: "Agents",
  access: manages("agents:write", "agent", { role: "admin" }),
  params,
} as const;
const ofTeam = {
  ...SIMULATES,
  tag: "Teams",
  access: manages("teams:write", "team", { role: "admin" }),
  params,
} as const;
const ofProject = {
  ...SIMULATES,
  tag: "Projects",
  access: manages("projects:write", "project", { role: "admin" }),
  params,
} as const;

export const simulateAgentBudgetPolicy = define({
  ...ofAgent,
  summary: "Try a change of an agent's budget policy",
  http: { method: "post", path: "/v1/agents/:id/budget-policy/simulate", successStatus: 200 },
  body: withRange(withoutVersion(updateAgentBudgetPolicy.body.shape)),
});

export const simulateAgentRestrictions = define({
  ...ofAgent,
  summary: "Try restrictions of an agent",
  http: { method: "post", path: "/v1/agents/:id/restrictions/simulate", successStatus: 200 },
  body: lists,
});

export const simulateTeamBudget = define({
  ...ofTeam,
  summary: "Try a team's budget",
  http: { method: "post", path: "/v1/teams/:id/budget/simulate", successStatus: 200 },
  bodySize: "large",
  body: withRange(withoutVersion(setTeamBudget.body.shape)),
});

export const simulateTeamApprovalRules = define({
  ...ofTeam,
  summary: "Try a team's approval rules",
  http: { method: "post", path: "/v1/teams/:id/approval-rules/simulate", successStatus: 200 },
  body: rules,
});

export const simulateTeamRestrictions = define({
  ...ofTeam,
  summary: "Try restrictions of a team",
  http: { method: "post", path: "/v1/teams/:id/restrictions/simulate", successStatus: 200 },
  body: lists,
});

export const simulateProjectBudget = define({
  ...ofProject,
  summary: "Try a project's budget",
  http: { method: "post", path: "/v1/projects/:id/budget/simulate", successStatus: 200 },
  body: withRange(withoutVersion(setProjectBudget.body.shape)),
});

export const simulateProjectApprovalRules = define({
  ...ofProject,
  summary: "Try a project's approval rules",
  http: { method: "post", path: "/v1/projects/:id/approval-rules/simulate", successStatus: 200 },
  body: rules,
});

export const simulateProjectRestrictions = define({
  ...ofProject,
  summary: "Try restrictions of a project",
  http: { method: "post", path: "/v1/projects/:id/restrictions/simulate", successStatus: 200 },
  body: lists,
});

export const simulateProjectCalendar = define({
  ...ofProject,
  summary: "Try a project's calendar",
  http: { method: "post", path: "/v1/projects/:id/calendar/simulate", successStatus: 200 },
  body: withRange(withoutVersion(setProjectCalendar.body.shape)),
});
