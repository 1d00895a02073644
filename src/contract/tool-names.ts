/** Tools of the agent toolset. An agent's `scopes` are these names. */
export const AGENT_TOOLS = [
  "get_budget",
  "check_payment",
  "create_card_payment",
  "create_wallet_payment",
  "pay_x402_request",
  "get_payment",
  "list_payments",
  "cancel_payment",
  "get_denial_feedback",
  "request_raise",
  "get_wallet",
] as const;

export type AgentTool = (typeof AGENT_TOOLS)[number];

/** Tools of the management toolset, for organizations' keys only, never for agents' keys. */
export const MANAGEMENT_TOOLS = [
  "list_agents",
  "get_agent",
  "create_agent",
  "get_agent_budget_policy",
  "update_agent_budget_policy",
  "pause_agent",
  "resume_agent",
  "archive_agent",
  "list_projects",
  "create_project",
  "get_project_budget",
  "set_project_budget",
  "get_project_approval_rules",
  "set_project_approval_rules",
  "list_teams",
  "create_team",
  "get_team_budget",
  "set_team_budget",
  "get_team_approval_rules",
  "set_team_approval_rules",
  "list_transactions",
] as const;

export type ManagementTool = (typeof MANAGEMENT_TOOLS)[number];

/** An agent spends; an organization's key provisions and supervises. No credential does both. */
export type ToolsetKind = "agent" | "management";

export function toolsetOf(name: string): ToolsetKind | null {
  const isNamed = (tool: string): boolean => tool === name;
  if (AGENT_TOOLS.some(isNamed)) return "agent";
  return MANAGEMENT_TOOLS.some(isNamed) ? "management" : null;
}
