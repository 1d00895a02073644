import type { ManagementTool } from "../tool-names.ts";
import { IDS } from "./shared.ts";
import type { ToolText } from "./types.ts";

/** Budgets of projects and teams: a cap, and limits for the children. */

type BudgetTool = Extract<ManagementTool, `${"get" | "set"}_${"project" | "team"}_budget`>;

const USAGE = {
  version: "for the next set",
  "usage.spentCents": "",
  "usage.reservedCents": "on hold or on its way",
  "usage.remainingCents": "null: no cap",
} as const;

const SPEND_LIMITS = {
  spendLimits: "Limits by period, each once; left out: they stay, []: none.",
  "spendLimits.period": "By the project's calendar.",
  "spendLimits.limitCents": "What all agents together may spend in it, in cents.",
} as const;
const SPEND_LIMIT_RESULTS = {
  "spendLimits.period": "",
  "spendLimits.limitCents": "",
  "spendLimits.remainingCents": "until resetsAt",
} as const;

const PROJECT_RESULTS = {
  capCents: "null: no cap",
  ...SPEND_LIMIT_RESULTS,
  "teams.teamId": "",
  "teams.capCents": "null: no cap",
  ...USAGE,
} as const;
const TEAM_RESULTS = {
  capCents: "null: no cap",
  ...SPEND_LIMIT_RESULTS,
  "agents.agentId": "",
  "agents.budgetCents": "",
  ...USAGE,
} as const;

const replaces = (read: string, children: string): string =>
  `Replaces the whole budget: call ${read}, change what you mean to change, and send all of it back, each of the ` +
  `${children} that you read included, with the version that you read. It is in force once it is answered. A cap below what is used stops further payments and reverses nothing. If it is refused as outdated: call ${read} again and decide again. `;

export const BUDGET_TOOLS: Readonly<Record<BudgetTool, ToolText>> = {
  get_project_budget: {
    description:
      "A project's cap, what its agents have used of it, the caps of its teams (list_teams has their names), and " +
      "the version that set_project_budget needs.",
    arguments: { projectId: IDS.project },
    results: PROJECT_RESULTS,
  },
  set_project_budget: {
    description:
      "Sets a project's cap and the caps of its teams. " +
      replaces("get_project_budget", "teams") +
      "The teams' caps may add up to more than the project's: each binds on its own. A team's agents keep their budgets.",
    arguments: {
      projectId: IDS.project,
      capCents: "What all agents of the project may spend together, in cents; null: no cap.",
      ...SPEND_LIMITS,
      teams: "Each team that get_project_budget showed, also those that stay as they are.",
      "teams.teamId": "As it was read.",
      "teams.capCents": "What all agents of this team may spend together, in cents; null: no cap.",
      version: "As get_project_budget answered it.",
    },
    results: PROJECT_RESULTS,
  },
  get_team_budget: {
    description:
      "A team's cap, what its agents have used of it, the budgets of its agents (list_agents has their names), " +
      "and the version that set_team_budget needs.",
    arguments: { teamId: IDS.team },
    results: TEAM_RESULTS,
  },
  set_team_budget: {
    description:
      "Sets a team's cap and the budgets of its agents. " +
      replaces("get_team_budget", "agents") +
      "The agents' budgets may add up to more than the cap: each binds on its own. An agent that is left out is " +
      "not removed: the call is refused. A changed budget raises the version of that agent's budget policy; its " +
      "other limits stay.",
    arguments: {
      teamId: IDS.team,
      capCents: "What all agents of the team may spend together, in cents; null: no cap.",
      ...SPEND_LIMITS,
      agents: "Each agent that get_team_budget showed, also those that stay as they are.",
      "agents.agentId": "As it was read.",
      "agents.budgetCents": "The lifetime budget of this agent, in cents.",
      version: "As get_team_budget answered it.",
    },
    results: TEAM_RESULTS,
  },
};
