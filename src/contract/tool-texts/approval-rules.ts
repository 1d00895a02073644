import type { ManagementTool } from "../tool-names.ts";
import { IDS } from "./shared.ts";
import type { ToolText } from "./types.ts";

/** Approval rules of projects and teams. A rule's fields are described at their definition. */

type RuleTool = Extract<ManagementTool, `${"get" | "set"}_${"project" | "team"}_approval_rules`>;

const RULES_RESULTS = {
  rules: "in the form that set takes, each with its id",
  version: "for the next set",
} as const;

const replaces = (noun: string): string =>
  `Replaces all approval rules of a ${noun}: a rule that is left out is deleted. So call get_${noun}_approval_rules, change, add or ` +
  "remove, and send all rules back, with the version that you read. Binds every payment after the answer; what " +
  "is on hold stays on hold. " +
  `If it is refused as outdated: call get_${noun}_approval_rules again and decide again.`;

const reads = (noun: string, others: string): string =>
  `The approval rules of a ${noun}: a payment of its agents that any of them holds waits for a person. With the version ` +
  `that set_${noun}_approval_rules needs. Payments are also held by ${others}, and the agents' own ` +
  "autoApprovalThresholdCents.";

const ruleArguments = (noun: string) => ({
  rules: "The complete list of rules; [] for none.",
  version: `As get_${noun}_approval_rules answered it.`,
});

export const APPROVAL_RULE_TOOLS: Readonly<Record<RuleTool, ToolText>> = {
  get_project_approval_rules: {
    description: reads("project", "the rules of its teams"),
    arguments: { projectId: IDS.project },
    results: RULES_RESULTS,
  },
  set_project_approval_rules: {
    description: replaces("project"),
    arguments: { projectId: IDS.project, ...ruleArguments("project") },
    results: RULES_RESULTS,
  },
  get_team_approval_rules: {
    description: reads("team", "the rules of its project"),
    arguments: { teamId: IDS.team },
    results: RULES_RESULTS,
  },
  set_team_approval_rules: {
    description: replaces("team"),
    arguments: { teamId: IDS.team, ...ruleArguments("team") },
    results: RULES_RESULTS,
  },
};
