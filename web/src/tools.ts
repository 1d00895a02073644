/** Tools to which an agent's key or a connected client may be scoped, and the purpose of each. */
export const TOOLS = [
  { value: "get_budget", label: "Read its budget" },
  { value: "check_payment", label: "Try a payment without making it" },
  { value: "create_card_payment", label: "Pay by card" },
  { value: "create_wallet_payment", label: "Pay from its wallet" },
  { value: "pay_x402_request", label: "Buy on the web (HTTP 402)" },
  { value: "get_payment", label: "Read a payment" },
  { value: "list_payments", label: "List its payments" },
  { value: "cancel_payment", label: "Cancel what is on hold" },
  { value: "get_denial_feedback", label: "Read why it was denied" },
  { value: "get_wallet", label: "Read its wallet" },
] as const;

export type Tool = (typeof TOOLS)[number]["value"];
export const isTool = (value: string): value is Tool => TOOLS.some((tool) => tool.value === value);
