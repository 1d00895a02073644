import type { AuthorizationRefusal } from "../domain/ledger/books.ts";
import type { Warning } from "../domain/ledger/thresholds.ts";

/** Records that only events have, as receivers read them. */

/** Our answer to a network that asked whether it may charge a card. */
export interface AuthorizationRecord {
  /** The network's. */
  id: string;
  isApproved: boolean;
  amountCents: number;
  currency: "USD";
  /** The merchant, as its network names it. */
  merchant: string;
  declinedBecause: AuthorizationRefusal | null;
}

/** A limit that has reached a threshold. */
export interface BudgetRecord extends Omit<Warning, "at" | "startedAt" | "resetsAt"> {
  /** Of the agent, team or project. */
  readonly id: string;
  readonly startedAt: Date | null;
  readonly resetsAt: Date | null;
}

/** Money that has arrived in an organization's treasury, or at its card issuer, and can't be taken back any more. */
export interface DepositRecord {
  id: string;
  amountCents: number;
  currency: "USD";
  /** The treasury's; null, as the next two, of money that has arrived at a card issuer. */
  address: string | null;
  onChainTxHash: string | null;
  chainCaip2: string | null;
  settledAt: Date;
}

/** Money that has gone from an organization's treasury to an agent's wallet, and can't be taken back by the chain any more. */
export interface FundingRecord {
  id: string;
  amountCents: number;
  currency: "USD";
  /** The wallet's. */
  address: string;
  onChainTxHash: string;
  chainCaip2: string;
  settledAt: Date;
}

/** A payment for the organization's own subscription. */
export interface BillingPaymentRecord {
  id: string;
  plan: string;
  reason: string;
  failedAt: Date;
}
