import type { ManagementTool } from "../tool-names.ts";
import { IDS } from "./shared.ts";
import type { ToolText } from "./types.ts";

/** The approval rules of projects and teams. */

type RuleTool = Extract<ManagementTool, `${"get" | "set"}_${"project" | "team"}_approval_rules`>;

const RULES_RESULTS = { rules: "as set takes them, each with its id", version: "for the next set" } as const;

/** Arguments of a rule, which are the same for both. */
const RULE = {
  "rules.id": "Of a rule that is there already, as it was read; left out for a new one.",
  "rules.type":
    "Which payments it holds. amount_above: above params.amountCents. new_recipient: to whom the agent has not " +
    "paid before; no params. recipient: to one of params.anyOf. merchant_category: of one of the codes in " +
    "params.anyOf. rail: by one of params.anyOf. velocity: more than params.count payments of the agent in " +
    "params.windowSeconds. duplicate: like an earlier one (recipient, amount) in params.windowSeconds. " +
    "time_window: at times outside, or inside, of the window in params.",
  "rules.enabled": "false: the rule is kept and holds nothing.",
  "rules.params": "The parameters of the type and no others; {} for new_recipient.",
  "rules.params.amountCents": "amount_above: cents; what is exactly this much is not held.",
  "rules.params.anyOf":
    "recipient: names or wallet addresses. merchant_category: four-digit codes. rail: `card`, `wallet`.",
  "rules.params.count": "velocity: this many pass, the next one is held.",
  "rules.params.windowSeconds": "velocity, duplicate: how far back.",
  "rules.params.timezone": "time_window: such as Europe/Berlin.",
  "rules.params.days": "time_window: weekdays; for a window over midnight the day on which it begins.",
  "rules.params.from": "time_window: HH:MM, included.",
  "rules.params.to": "time_window: HH:MM up to 24:00, not included; earlier than `from`: over midnight.",
  "rules.params.outside":
    "time_window: true (the default) holds what is outside the window, false what is inside.",
} as const;

const replaces = (noun: string): string =>
  `Replaces all approval rules of a ${noun}: a rule that is left out is deleted. So call get_${noun}_approval_rules, change, add or ` +
  "remove, and send all rules back, with the version that you read. Binds every payment after the answer; what " +
  "is on hold stays on hold. " +
  `If it is refused as outdated: call get_${noun}_approval_rules again and decide again.`;

const reads = (noun: string, others: string): string =>
  `The approval rules of a ${noun}: a payment of its agents that any of them holds waits for a person. With the version ` +
  `that set_${noun}_approval_rules wants. What holds payments besides: ${others}, and the agents' own ` +
  "autoApprovalThresholdCents.";

const ruleArguments = (noun: string) => ({
  rules: "The complete list of rules; [] for none.",
  ...RULE,
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
