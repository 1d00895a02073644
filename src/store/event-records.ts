import type { AuthorizationRefusal } from "../domain/ledger/books.ts";
import type { Warning } from "../domain/ledger/thresholds.ts";

/** Forms of records that exist only in events. */

/** The service's answer to a network's authorization request. */
export interface AuthorizationRecord {
  /** Id assigned by the network. */
  id: string;
  isApproved: boolean;
  amountCents: number;
  currency: "USD";
  /** Merchant, as named by the network. */
  merchant: string;
  declinedBecause: AuthorizationRefusal | null;
}

/** A limit that has reached a threshold. */
export interface BudgetRecord extends Omit<Warning, "at" | "startedAt" | "resetsAt"> {
  /** Id of the agent, team or project. */
  readonly id: string;
  readonly startedAt: Date | null;
  readonly resetsAt: Date | null;
}

/** Money that has arrived in a treasury, in an agent's wallet or at a card issuer, irreversibly. */
export interface DepositRecord {
  id: string;
  amountCents: number;
  currency: "USD";
  /** Address of the treasury or wallet; null, as the next two, for money that arrived at a card issuer. */
  address: string | null;
  onChainTxHash: string | null;
  chainCaip2: string | null;
  settledAt: Date;
}

/** Money that has moved from an organization's treasury to an agent's wallet, irreversibly on the chain. */
export interface FundingRecord {
  id: string;
  amountCents: number;
  currency: "USD";
  /** Address of the wallet. */
  address: string;
  onChainTxHash: string;
  chainCaip2: string;
  settledAt: Date;
}

export interface BillingPaymentRecord {
  id: string;
  plan: string;
  reason: string;
  failedAt: Date;
}
