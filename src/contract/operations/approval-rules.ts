import { z } from "zod";
import { manages, reads } from "../access.ts";
import { approvalRules, rulesAsSent } from "../approval-rules.ts";
import { define } from "../define.ts";
import { uuid, version } from "../primitives.ts";
import { changes, managementTool } from "../tools.ts";

const params = z.strictObject({ id: uuid });
const body = z.strictObject({ rules: rulesAsSent, version });

const READS =
  "The rules that hold payments for a person's approval, with the `version` that a change must name.";
const REPLACES =
  "Replaces all rules. A rule that is left out is deleted, a rule with an id keeps it, and a rule without one receives one; an unknown id is 400. An outdated `version` is 409 STALE_APPROVAL_RULES. The rules apply to every payment after the answer.";

export const getProjectApprovalRules = define({
  summary: "Read a project's approval rules",
  description: READS,
  tag: "Projects",
  access: reads("projects:write", "project"),
  rate: "standard",
  http: { method: "get", path: "/v1/projects/:id/approval-rules", successStatus: 200 },
  tool: managementTool("get_project_approval_rules", "Read a project's approval rules", {
    idName: "projectId",
  }),
  params,
  output: approvalRules,
  errors: ["NOT_FOUND"],
});

export const setProjectApprovalRules = define({
  summary: "Set a project's approval rules",
  description: REPLACES,
  tag: "Projects",
  access: manages("projects:write", "project", { role: "admin" }),
  rate: "standard",
  http: { method: "put", path: "/v1/projects/:id/approval-rules", successStatus: 200 },
  tool: managementTool("set_project_approval_rules", "Set a project's approval rules", {
    idName: "projectId",
    hints: changes,
  }),
  params,
  body,
  output: approvalRules,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED", "STALE_APPROVAL_RULES"],
});

export const getTeamApprovalRules = define({
  summary: "Read a team's approval rules",
  description: READS,
  tag: "Teams",
  access: reads("teams:write", "team"),
  rate: "standard",
  http: { method: "get", path: "/v1/teams/:id/approval-rules", successStatus: 200 },
  tool: managementTool("get_team_approval_rules", "Read a team's approval rules", { idName: "teamId" }),
  params,
  output: approvalRules,
  errors: ["NOT_FOUND"],
});

export const setTeamApprovalRules = define({
  summary: "Set a team's approval rules",
  description: REPLACES,
  tag: "Teams",
  access: manages("teams:write", "team", { role: "admin" }),
  rate: "standard",
  http: { method: "put", path: "/v1/teams/:id/approval-rules", successStatus: 200 },
  tool: managementTool("set_team_approval_rules", "Set a team's approval rules", {
    idName: "teamId",
    hints: changes,
  }),
  params,
  body,
  output: approvalRules,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED", "STALE_APPROVAL_RULES"],
});
