import type { Address, Hash, Hex } from "viem";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "../../../activities/documents.ts";
import type { TransactionStatus } from "../../../src/domain/agent/payment.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { BudgetBooksView } from "../../../src/messages/budget.ts";

/** What is compared, as it was read; plain data. */

/** A payment's record, as far as rails are concerned. */
export interface PaymentEntry {
  readonly id: string;
  readonly agentId: string;
  readonly rail: "card" | "wallet";
  /** The merchant, or the account on the chain. */
  readonly to: string;
  readonly amountCents: number;
  readonly status: TransactionStatus;
  readonly hash: string | null;
}

/** An effect on the card processor's books. */
export interface LedgerEntry {
  readonly id: string;
  readonly transactionId: string;
  readonly merchant: string;
  readonly amountCents: number;
  readonly status: "captured" | "reversed";
}

/** What a wallet on the chain says that it has paid. */
export interface SpentEvent {
  readonly wallet: Address;
  readonly id: Hex;
  readonly to: Address;
  readonly units: bigint;
  readonly hash: Hash;
}

/** What there is of an agent. Its actor was asked before its records were read. */
export interface AgentBooksRead {
  readonly agentId: string;
  /** `lost`: there is no such actor; `silent`: it did not answer. */
  readonly actor: AgentStateView | "lost" | "silent";
  readonly record: AgentDocument | null;
  readonly transactions: readonly TransactionDocument[];
  readonly approvals: readonly ApprovalDocument[];
}

/** A project's budget, asked after the actors of its agents. Null: none was ever begun. */
export interface ProjectBooks {
  readonly projectId: string;
  readonly budget: BudgetBooksView | null;
  /** There is none, and the project's record says that there was one with caps. */
  readonly isBudgetLost: boolean;
  readonly agents: readonly AgentStateView[];
}

export const paymentEntry = ({
  _id,
  agentId,
  amountCents,
  merchant,
  onChainTxHash,
  rail,
  status,
}: TransactionDocument): PaymentEntry => ({
  id: _id,
  agentId,
  rail,
  to: merchant,
  amountCents,
  status,
  hash: onChainTxHash,
});
