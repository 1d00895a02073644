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

export type AgentTool = (typeof AGENT_TOOLS)[number];
