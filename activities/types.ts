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

/** A payment of which something is left to be done. */
export interface UnfinishedPayment {
  readonly profile: AgentProfile;
  readonly payment: StoredPayment;
}

/** The policy that an agent's wallet is to mirror in its limits. */
export interface MirroredLimits {
  readonly agentId: string;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
}

/** The activities as workflows see them. Each can be run any number of times with the same effect as once. */
export interface Activities {
  /**
   * Does what payments still ask for, each for itself; the ledger itself records the results, one for each payment in order. What could
   * not be done has revision 0.
   */
  executePayments(input: { payments: readonly UnfinishedPayment[] }): Promise<Execution[]>;
  /**
   * Writes agents' records as the project's ledger has their accounts, each independently. The agents for whom that was done; fails
   * where it was for none.
   */
  writeAccounts(input: { accounts: readonly AccountSummary[] }): Promise<readonly string[]>;
  /** Tells agents' actors what the ledger has decided, each independently; the agents for whom that was done, as `writeAccounts`. */
  tellActors(input: { accounts: readonly ToldActor[] }): Promise<readonly string[]>;
  /** Writes the caps of a project and its teams into their records. */
  writeCaps(input: { projectId: string; caps: readonly RecordedCap[] }): Promise<void>;
  /** Writes an agent's record as its actor has it. */
  writeAgent(input: { summary: AgentSummary }): Promise<void>;
  /** Tells the project's ledger what it is to follow of an agent. */
  followInLedger(input: { agent: AgentProfile; followed: FollowedAgent }): Promise<void>;
  /** Asks the ledger to expire a payment on hold; answers how its approval has ended, null if long over. */
  expireApproval(input: { profile: AgentProfile; transactionId: string }): Promise<ApprovalEnd | null>;
  /** Queries the rail for the status of a payment; records what is new and confirms it to the ledger. */
  followPayment(input: { profile: AgentProfile; payment: Payment }): Promise<Payment>;
  /**
   * Has agents' policies mirrored into the limits of their wallets on the chain, each for itself; nothing where they have none. The agents
   * for whom that was done; fails where it was for none.
   */
  mirrorLimits(input: { limits: readonly MirroredLimits[] }): Promise<readonly string[]>;
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
  /**
   * Mails a person about payments on hold that are still undecided. `unsent` if the mail server did not take the mail: the workflow
   * tries again.
   */
  mailApprovals(input: ApprovalMailInput): Promise<ApprovalMailEnd>;
  /** Forgets a signing secret that was rotated. */
  eraseWebhookSecret(input: SecretExpiryInput): Promise<void>;
  /** Goes on with the replay of what an endpoint missed; whether that was the last of it. */
  replayWebhooks(input: ReplayInput): Promise<boolean>;
  /** Makes deliveries of what happens; ends after some minutes, or when its process does. */
  watchEvents(): Promise<void>;
  /** Tells of deposits into treasuries; as `watchEvents`. */
  watchDeposits(): Promise<void>;
  /** Has a sandbox's network do the next thing with a payment, and books it. */
  playNetworkEffect(input: NetworkEffectInput): Promise<void>;
  /**
   * Books what each rail's network has done with payments since, in epoch milliseconds; the times of the newest changes that were
   * booked.
   */
  bookNetworks(input: { since: NetworkTimes }): Promise<NetworkTimes>;
}
