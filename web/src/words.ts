import type { Output } from "../../src/client/types.ts";
import type { RuleType } from "../../src/domain/rules/rules.ts";

export type Approval = Output<"getApproval">["approval"];
export type Transaction = Output<"getTransaction">["transaction"];
export type Agent = Output<"getAgent">["agent"];
export type Policy = Output<"getAgentBudgetPolicy">;
export type Member = Output<"listMembers">["members"][number];
export type Rail = Transaction["rail"];

/** Why a payment waits, by the type of the rule that flagged it. */
const FLAGS: Readonly<Record<RuleType | "agent_threshold", string>> = {
  agent_threshold: "It is above what the agent may pay without asking.",
  amount_above: "It is above an amount that the agent’s team or project has set.",
  new_recipient: "No payment of this agent to this recipient has gone through before.",
  recipient: "The recipient is one that a person is to look at.",
  merchant_category: "A person is to look at this kind of merchant.",
  rail: "A person is to look at every payment of this way of paying.",
  velocity: "The agent has made many payments in a short time.",
  time_window: "It comes at a time for which a person is to look at payments.",
  duplicate: "It is like another payment of the agent shortly before: the same recipient and amount.",
};

/** The same in two or three words. */
const SHORT_FLAGS: Readonly<Record<RuleType | "agent_threshold", string>> = {
  agent_threshold: "Above threshold",
  amount_above: "Large amount",
  new_recipient: "New recipient",
  recipient: "Listed recipient",
  merchant_category: "Merchant category",
  rail: "Way of paying",
  velocity: "Many payments",
  time_window: "Unusual time",
  duplicate: "Possible duplicate",
};

const wordIn = (words: Readonly<Record<string, string>>, word: string): string => words[word] ?? word;
export const flagOf = (type: string): string => wordIn(FLAGS, type);
export const shortFlagOf = (type: string): string => wordIn(SHORT_FLAGS, type);

export const RAILS: Readonly<Record<Rail, string>> = {
  card: "by card",
  wallet: "from the agent’s wallet, on chain: once sent, it can’t be taken back",
};

/** What people often deny for, said so that an agent knows what to do next. */
export const REASONS = [
  "Too expensive: look for a cheaper offer.",
  "Not needed: go on without it.",
  "Wrong recipient: check whom to pay, then ask again.",
  "Say more exactly what it is for, then ask again.",
] as const;

export const ROLES = [
  {
    value: "member",
    label: "Member",
    description: "Reads everything but keys and webhooks, decides approvals, pauses agents.",
  },
  { value: "admin", label: "Admin", description: "All that an owner does, but make or remove owners." },
  { value: "owner", label: "Owner", description: "Everything, the organization’s settings included." },
] as const;
