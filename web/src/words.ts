import type { Output } from "../../src/client/types.ts";

export type Approval = Output<"getApproval">["approval"];
export type Transaction = Output<"getTransaction">["transaction"];
/** Returns the payee's name: for a purchase on the web, the shop. */
export const payeeOf = ({ recipient, resource }: Pick<Approval, "recipient" | "resource">): string =>
  resource === null ? recipient : new URL(resource).host;

export const payeeIn = ({ merchant, resource }: Pick<Transaction, "merchant" | "resource">): string =>
  payeeOf({ recipient: merchant, resource });

export type Agent = Output<"getAgent">["agent"];
export type Policy = Output<"getAgentBudgetPolicy">;
export type Member = Output<"listMembers">["members"][number];
export type Rail = Transaction["rail"];

/** Common reasons for a denial, phrased so that an agent knows what to do next. */
export const REASONS = [
  "Too expensive: look for a cheaper offer.",
  "Not needed: go on without it.",
  "Wrong recipient: check whom to pay, then ask again.",
  "Say more exactly what it is for, then ask again.",
] as const;

/** Returns a role as in "as a member". */
export const withArticle = (role: string): string => (role === "member" ? "a member" : `an ${role}`);

export const ROLES = [
  {
    value: "auditor",
    label: "Auditor",
    description: "Reads what a member reads, and the audit log. Decides and changes nothing.",
  },
  {
    value: "member",
    label: "Member",
    description: "Reads everything but keys and webhooks, decides approvals, pauses agents.",
  },
  { value: "admin", label: "Admin", description: "All that an owner does, but make or remove owners." },
  { value: "owner", label: "Owner", description: "Everything, the organization’s settings included." },
] as const;
