import type { ManagementTool } from "../tool-names.ts";
import { APPROVAL_RULE_TOOLS } from "./approval-rules.ts";
import { BUDGET_TOOLS } from "./budgets.ts";
import { IDS, PAGED, PAGING, STATUSES } from "./shared.ts";
import type { ToolText } from "./types.ts";

/** Texts of the management toolset, for a model that provisions and supervises agents. */

const CREATE_KEY =
  "A new random value (a UUID) for each create, stored before the call; the same one only to repeat a call.";
const CREATED_ONCE =
  "After a time-out or an unclear answer repeat the call with the same idempotencyKey and arguments: nothing is created twice.";

/** Limits in a write; the meaning of omitting one differs. */
const LIMITS = {
  budgetCents: "The agent's lifetime budget, in cents: 5000 is 50.00 USD.",
  autoApprovalThresholdCents:
    "A payment above it waits for a person: 1000 means above 10.00 USD, 0 each payment; null: no payment waits because of its amount.",
  perTransactionLimitCents:
    "The maximum of one payment, in cents; a larger payment is denied. null: no limit.",
  dailySpendLimitCents: "The maximum spend in a UTC day, in cents. null: no limit.",
  hourlyVelocityLimit:
    "The maximum number of payments in any 60 minutes; one may count up to two minutes longer. null: no limit.",
  dailyVelocityLimit: "The maximum number of payments in a UTC day. null: no limit.",
  spendLimits: "Limits by period, each period once. []: none.",
  "spendLimits.period": "A day, week, month, quarter or year by the project's calendar.",
  "spendLimits.limitCents": "The maximum spend in it, in cents.",
} as const;

const agentResults = (path: string) => ({
  [`${path}.id`]: "the agentId of other tools",
  [`${path}.name`]: "",
  [`${path}.state`]: "",
  [`${path}.teamId`]: "",
  [`${path}.budgetCents`]: "",
  [`${path}.spentCents`]: "in all",
  [`${path}.reservedCents`]: "",
});

const POLICY_RESULTS = {
  budgetCents: "",
  autoApprovalThresholdCents: "",
  "spendLimits.period": "",
  "spendLimits.limitCents": "",
  "spendLimits.remainingCents": "until resetsAt",
  version: "for the next update",
  "usage.spentCents": "in all",
  "usage.reservedCents": "on hold or on its way",
  "usage.remainingCents": "",
  "usage.todayCents": "this UTC day",
};

const AGENT_TOOLS = {
  list_agents: {
    description:
      "Agents, newest first, with state, budget and what each has spent in all; archived ones too, unless " +
      "`state` says otherwise. Use it to find an agent's id. What an agent spent today is in " +
      "get_agent_budget_policy.",
    arguments: {
      ...PAGING,
      projectId: "Only agents of this project.",
      teamId: "Only agents of this team.",
      state: "Only agents in this state; `archived` is for good.",
      name: "Only agents whose name contains this text, ignoring case.",
      with: "`lastPayment`: adds each agent's newest payment, whatever its status.",
    },
    results: { ...agentResults("agents"), ...PAGED },
  },
  get_agent: {
    description:
      "One agent as it is now: state (`active`: may pay; `paused`: may not until it is resumed; `archived`: " +
      "never again), team, budget, what it has spent and reserved in all, its wallet, and when its key was last " +
      "used. All of its limits are in get_agent_budget_policy.",
    arguments: { agentId: IDS.agent },
    results: agentResults("agent"),
  },
  create_agent: {
    description:
      "Creates an agent in a team, with its limits, a wallet and its API key; it may pay at once. A limit left " +
      "out is none: give autoApprovalThresholdCents if a person has to approve payments. The answer's apiKey " +
      "and mcpConfigBlock are for the agent's program: hand them on or keep them in a secret store at once; show " +
      "nobody. They come again only if you repeat this very call within some 30 minutes. apiKey null " +
      "with keyDelivery `expired`: it is not given out any more; if it is lost, archive_agent this one and " +
      "create another, or ask a person for a key. " +
      CREATED_ONCE,
    arguments: {
      name: "What people know the agent by.",
      description: "What the agent is for.",
      teamId: "The team it belongs to, whose cap and approval rules bind it; list_teams has the ids.",
      ...LIMITS,
      walletTargetCents: "Set by people.",
      scopes: "The tools that the agent may use, for good; left out: all of them.",
      idempotencyKey: CREATE_KEY,
    },
    results: {
      ...agentResults("agent"),
      apiKey: "a secret",
      mcpConfigBlock: "for the agent's MCP client; holds the secret",
      keyDelivery: "",
    },
  },
  get_agent_budget_policy: {
    description:
      "An agent's limits as they are in force, what is used of them (in all, today, in the last hour), and the " +
      "version that update_agent_budget_policy needs. Team and project may leave less: get_team_budget, " +
      "get_project_budget.",
    arguments: { agentId: IDS.agent },
    results: POLICY_RESULTS,
  },
  update_agent_budget_policy: {
    description:
      "Changes limits of one agent: those that you give, the others stay. It binds the agent's next payment, and " +
      "payments on hold are checked against it when they are approved. A limit below what is used stops further " +
      "payments and takes nothing back. Read get_agent_budget_policy first and send its version; refused as " +
      "stale, read again and decide again. To change the budgets of a whole team at once use set_team_budget; to " +
      "stop an agent pause_agent.",
    arguments: {
      agentId: IDS.agent,
      ...LIMITS,
      budgetCents: `${LIMITS.budgetCents} What is spent already counts.`,
      walletTargetCents: "Set by people.",
      version: "As get_agent_budget_policy answered it.",
    },
    results: POLICY_RESULTS,
  },
  pause_agent: {
    description:
      "Stops an agent at once: each of its calls is refused until resume_agent. Nothing is lost: key, limits and " +
      "payments on hold stay, but what a person approves meanwhile fails. What was sent before is not stopped. " +
      "Pausing a paused agent changes nothing.",
    arguments: { agentId: IDS.agent },
    results: agentResults("agent"),
  },
  resume_agent: {
    description:
      "Lets a paused agent pay again, within the same limits; first make sure that the reason for the pause is resolved. Resuming an " +
      "active agent changes nothing.",
    arguments: { agentId: IDS.agent },
    results: agentResults("agent"),
  },
  archive_agent: {
    description:
      "Archives an agent permanently: its key is revoked and its payments on hold are denied. Your key may do this only to an agent " +
      "that it created itself and that was never used: its API key was provably not delivered, it never called " +
      "or paid, its wallet is empty, and no person touched its keys. Use it for an agent whose key was lost on " +
      "creation: after the 30 minutes in which the key can be delivered, repeat the create_agent call; once that " +
      "answers keyDelivery `expired`, archive. To stop any other agent use pause_agent and ask a person to " +
      "archive it. If walletsFailed is not empty, call again until it is.",
    arguments: { agentId: IDS.agent },
    results: {
      ...agentResults("agent"),
      walletsFailed: "wallets that could not be given up yet: call again",
    },
  },
} as const satisfies Partial<Record<ManagementTool, ToolText>>;

const containerResults = (path: string, idName: string) => ({
  [`${path}.id`]: `the ${idName} of other tools`,
  [`${path}.name`]: "",
  [`${path}.archivedAt`]: "null: in use",
});

const CONTAINER_TOOLS = {
  list_projects: {
    description:
      "Projects, newest first, archived ones too, unless `state` says otherwise. A key that is bound to a team sees none.",
    arguments: { ...PAGING, state: "Only those in use, or only archived ones." },
    results: { ...containerResults("projects", "projectId"), ...PAGED },
  },
  create_project: {
    description:
      "Creates a project: a container of teams, without a cap and without approval rules, which " +
      "set_project_budget and set_project_approval_rules set. Only for a key that is bound to the whole " +
      "organization. create_team puts " +
      `teams into it. ${CREATED_ONCE}`,
    arguments: {
      name: "What people know the project by.",
      description: "What the project is for.",
      idempotencyKey: CREATE_KEY,
    },
    results: containerResults("project", "projectId"),
  },
  list_teams: {
    description: "Teams, newest first, archived ones too, unless `state` says otherwise.",
    arguments: {
      ...PAGING,
      projectId: "Only teams of this project.",
      state: "Only those in use, or only archived ones.",
    },
    results: { ...containerResults("teams", "teamId"), "teams.projectId": "", ...PAGED },
  },
  create_team: {
    description:
      "Creates a team: a container of agents, without a cap and without approval rules, which set_team_budget " +
      "and set_team_approval_rules set. Without projectId it lies in the project that your key is bound to, " +
      `else in the organization's default project. Not for a key that is bound to a team. ${CREATED_ONCE}`,
    arguments: {
      name: "What people know the team by.",
      description: "What the team is for.",
      projectId: "The project that the team is for, as create_project answers it.",
      idempotencyKey: CREATE_KEY,
    },
    results: { ...containerResults("team", "teamId"), "team.projectId": "" },
  },
} as const satisfies Partial<Record<ManagementTool, ToolText>>;

export const MANAGEMENT_TOOL_TEXTS: Readonly<Record<ManagementTool, ToolText>> = {
  ...AGENT_TOOLS,
  ...CONTAINER_TOOLS,
  ...BUDGET_TOOLS,
  ...APPROVAL_RULE_TOOLS,
  list_transactions: {
    description:
      "Payments of agents, newest first, each as it is now. Use it to see what an agent, a team or a project " +
      "paid and what was refused, or to find a payment by its words or amount: a page of such a search may have few " +
      "payments or none, so continue while there is a nextCursor. " +
      `Its status: ${STATUSES} Sums are in get_agent_budget_policy, get_team_budget and get_project_budget.`,
    arguments: {
      ...PAGING,
      agentId: "Only of this agent.",
      type: "Only card payments, or only wallet payments.",
      status: "Only those with this status now.",
      range: "Only of the last 7, 30 or 90 days; left out: of any time.",
      projectId: "Only of this project's agents.",
      teamId: "Only of this team's agents.",
    },
    results: {
      "transactions.id": "",
      "transactions.createdAt": "",
      "transactions.agentName": "",
      "transactions.merchant": "or the address",
      "transactions.amountCents": "",
      "transactions.rail": "",
      "transactions.status": "",
      "transactions.purpose": "",
      "transactions.denialCode": "",
      "transactions.denialReason": "",
      ...PAGED,
    },
  },
};
