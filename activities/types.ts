import type { Addressed, BudgetCommand } from "../src/domain/budget/commands.ts";
import type { BudgetReport } from "../src/domain/budget/report.ts";
import type { Payment } from "../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../src/domain/agent/policy.ts";
import type { AgentProfile, WrittenSummary } from "../src/domain/agent/state.ts";
import type { CarriedOut } from "../src/messages/agent.ts";
import type { DeliveryEnd, DeliveryInput, ReplayInput, SecretExpiryInput } from "../src/messages/delivery.ts";
import type { InviteMailEnd, InviteMailInput } from "../src/messages/mail.ts";
import type { OrganizationInput } from "../src/messages/organization.ts";

/** An agent has been told. */
export type Delivered = Omit<Extract<BudgetCommand, { kind: "delivered" }>, "kind">;

/** The activities as workflows see them. Each can be run any number of times with the same effect as once. */
export interface Activities {
  /** Carries out what a payment still asks for; the agent's actor itself records the result. */
  carryOutPayment(input: {
    profile: AgentProfile;
    payment: Payment;
    /** For what the project's budget is to be asked. */
    report?: BudgetReport;
    /** In whose place; left out: the server's. */
    executor?: Payment["executor"];
  }): Promise<CarriedOut>;
  /** Tells the project's budget what an agent's totals are. */
  reportToBudget(input: { profile: AgentProfile; report: BudgetReport }): Promise<void>;
  /** The agents of a project, or of some of its teams, whatever became of them. */
  agentsUnder(input: {
    projectId: string;
    teams: "all" | readonly string[];
  }): Promise<{ agentId: string; teamId: string }[]>;
  /** Tells agents what the replacement of a budget means for them. Answers those that could be told. */
  tellAgents(input: { deliveries: readonly Addressed[] }): Promise<Delivered[]>;
  /** Writes the agent's record as its actor has it. */
  writeAgentSummary(input: { agentId: string; summary: WrittenSummary }): Promise<void>;
  /** Asks the agent's actor to expire a payment on hold; answers the payment as it is then, null if long over. */
  expireApproval(input: { profile: AgentProfile; transactionId: string }): Promise<Payment | null>;
  /** Calls the rail for an approved payment, writes it down and tells the agent's actor. */
  executeApproved(input: { profile: AgentProfile; payment: Payment }): Promise<Payment>;
  /** Asks the rail what has become of a payment; writes down and tells the actor what is new. */
  followPayment(input: { profile: AgentProfile; payment: Payment }): Promise<Payment>;
  /** Has the agent's policy mirrored into the limit of its wallet on the chain; nothing where it has none. */
  mirrorLimits(input: { agentId: string; policy: BudgetPolicy; policyVersion: number }): Promise<void>;
  /** Ends the window in which the agent's first key is delivered again, and gives up a create that has no record by now. */
  closeDeliveryWindow(input: { agentId: string }): Promise<"committed" | "discarded">;
  /** Gives up the right to spend from an archived agent's wallet. Fails until that is so. */
  detachWallet(input: { profile: AgentProfile }): Promise<void>;
  /** Creates the organization's default project and team, and marks it ready. */
  provisionOrganization(input: OrganizationInput): Promise<void>;
  /**
   * Makes the next attempt of a delivery; its end. Fails after an attempt that another one follows, and says with the failure
   * when that is due.
   */
  deliverWebhook(input: DeliveryInput): Promise<DeliveryEnd>;
  /** Hands an invite's mail to the mail server, unless that was done, or it is of no use any more. Fails where it is to be tried again. */
  mailInvite(input: InviteMailInput): Promise<InviteMailEnd>;
  /** Forgets a signing secret that was rotated. */
  eraseWebhookSecret(input: SecretExpiryInput): Promise<void>;
  /** Goes on with the replay of what an endpoint missed; whether that was the last of it. */
  replayWebhooks(input: ReplayInput): Promise<boolean>;
  /** Makes deliveries of what happens; ends after some minutes, or when its process does. */
  watchEvents(): Promise<void>;
  /** Tells of deposits into treasuries; as `watchEvents`. */
  watchDeposits(): Promise<void>;
}
