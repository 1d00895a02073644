import type { Payment, StoredPayment } from "../src/domain/ledger/payment.ts";
import type { BudgetPolicy } from "../src/domain/ledger/policy.ts";
import type { AgentProfile, AgentSummary, FollowedAgent } from "../src/domain/agent/state.ts";
import type { RecordedCap } from "../src/domain/ledger/commands.ts";
import type { AccountSummary } from "../src/domain/ledger/state.ts";
import type { ToldActor } from "../src/messages/agent.ts";
import type { ApprovalEnd } from "../src/messages/approval.ts";
import type { Execution } from "../src/messages/ledger.ts";
import type { DeliveryEnd, DeliveryInput, ReplayInput, SecretExpiryInput } from "../src/messages/delivery.ts";
import type { ApprovalMailEnd } from "../src/domain/approval-mails.ts";
import type { ApprovalMailInput, InviteMailEnd, InviteMailInput } from "../src/messages/mail.ts";
import type { NetworkEffectInput, NetworkTimes } from "../src/messages/rail-network.ts";
import type { OrganizationInput } from "../src/messages/organization.ts";

export interface UnfinishedPayment {
  readonly profile: AgentProfile;
  readonly payment: StoredPayment;
}

export interface MirroredLimits {
  readonly agentId: string;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
}

/** Activities called by workflows. All are idempotent. */
export interface Activities {
  /**
   * Does the remaining work on payments, each independently. Returns results in the order of the payments, which the
   * ledger itself records; a payment that could not be processed has revision 0.
   */
  executePayments(input: { payments: readonly UnfinishedPayment[] }): Promise<Execution[]>;
  /**
   * Writes agents' records from the accounts in the project's ledger, each independently. Returns the agents that
   * succeeded; fails if none did.
   */
  writeAccounts(input: { accounts: readonly AccountSummary[] }): Promise<readonly string[]>;
  /** Tells agents' actors of the ledger's decisions, each independently. Returns as `writeAccounts` does. */
  tellActors(input: { accounts: readonly ToldActor[] }): Promise<readonly string[]>;
  /** Writes the caps of a project and its teams to their records. */
  writeCaps(input: { projectId: string; caps: readonly RecordedCap[] }): Promise<void>;
  /** Writes an agent's record from its actor's state. */
  writeAgent(input: { summary: AgentSummary }): Promise<void>;
  /** Tells the project's ledger an agent's name, key and status, which it follows. */
  followInLedger(input: { agent: AgentProfile; followed: FollowedAgent }): Promise<void>;
  /** Asks the ledger to expire a payment on hold. Returns how its approval ended; null if that was long ago. */
  expireApproval(input: { profile: AgentProfile; transactionId: string }): Promise<ApprovalEnd | null>;
  /** Queries a payment's status on its rail. Records anything new and confirms it to the ledger. */
  followPayment(input: { profile: AgentProfile; payment: Payment }): Promise<Payment>;
  /**
   * Mirrors agents' policies to the limits of their wallets on the chain, each independently. Does nothing for an agent
   * without a wallet. Returns the agents that succeeded; fails if none did.
   */
  mirrorLimits(input: { limits: readonly MirroredLimits[] }): Promise<readonly string[]>;
  /** Ends the window in which the agent's first key is delivered again. Discards a create that has no record by now. */
  closeDeliveryWindow(input: { agentId: string }): Promise<"committed" | "discarded">;
  /** Gives up the right to spend from an archived agent's wallet. Fails until that is done. */
  detachWallet(input: { profile: AgentProfile }): Promise<void>;
  /** Creates the organization's default project and team, and marks the organization ready. */
  provisionOrganization(input: OrganizationInput): Promise<void>;
  /**
   * Makes the next attempt of a delivery and returns the delivery's end. Fails if another attempt follows; the failure
   * says when it is due.
   */
  deliverWebhook(input: DeliveryInput): Promise<DeliveryEnd>;
  /**
   * Hands an invite's mail to the mail server, unless that was done or the invite is no longer valid. Fails if it must
   * be retried.
   */
  mailInvite(input: InviteMailInput): Promise<InviteMailEnd>;
  /**
   * Mails a person about payments on hold that are still undecided. Returns `unsent` if the mail server did not accept
   * the mail; the workflow retries.
   */
  mailApprovals(input: ApprovalMailInput): Promise<ApprovalMailEnd>;
  /** Erases a rotated signing secret. */
  eraseWebhookSecret(input: SecretExpiryInput): Promise<void>;
  /** Continues the replay of events that an endpoint missed. Returns whether it is complete. */
  replayWebhooks(input: ReplayInput): Promise<boolean>;
  /** Turns events into webhook deliveries. Ends after some minutes, or with its process. */
  watchEvents(): Promise<void>;
  /** Announces deposits into treasuries and wallets. Ends as `watchEvents` does. */
  watchDeposits(): Promise<void>;
  /** Plays the next effect of a sandbox's network on a payment, and books it. */
  playNetworkEffect(input: NetworkEffectInput): Promise<void>;
  /**
   * Books what each rail's network has done with payments since the given times (epoch milliseconds), and in the feeds
   * that keep their own. Returns the times of the newest changes booked.
   */
  bookNetworks(input: { since: NetworkTimes }): Promise<NetworkTimes>;
}
