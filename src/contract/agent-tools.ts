/** The tools of the agent band (decisions.md section 8): an agent's `scopes` are these names. */
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
  "get_wallet",
] as const;

/** The tools of the management band, which an organization's key will use; an agent's key never may. */
export const MANAGEMENT_TOOLS: ReadonlySet<string> = new Set([
  "list_agents",
  "get_agent",
  "create_agent",
  "get_agent_budget_policy",
  "update_agent_budget_policy",
  "pause_agent",
  "resume_agent",
  "archive_agent",
  ...["project", "team"].flatMap((noun) => [
    `list_${noun}s`,
    `create_${noun}`,
    `get_${noun}_budget`,
    `set_${noun}_budget`,
    `get_${noun}_approval_rules`,
    `set_${noun}_approval_rules`,
  ]),
  "list_transactions",
]);

export type AgentTool = (typeof AGENT_TOOLS)[number];
