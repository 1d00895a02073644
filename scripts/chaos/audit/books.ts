import type { Address, Hash, Hex } from "viem";
import type { TransactionStatus } from "../../../src/domain/agent/payment.ts";
import type { PayingAgent } from "../tenant.ts";
import type { Ticket } from "../tickets.ts";

/** Everything that is compared, as it was read from MongoDB, the chain and Temporal; plain data, so that tests can alter it. */
export interface Books {
  readonly agents: readonly PayingAgent[];
  readonly tickets: readonly Ticket[];
  readonly transactions: readonly TransactionEntry[];
  readonly ledger: readonly LedgerEntry[];
  readonly actors: readonly ActorEntry[];
  readonly records: readonly RecordEntry[];
  readonly chain: ChainBooks;
}

export interface TransactionEntry {
  readonly id: string;
  readonly agentId: string;
  readonly keyHash: string;
  readonly sequence: number;
  readonly rail: "card" | "wallet";
  /** The merchant, or the account on the chain. */
  readonly to: string;
  readonly amountCents: number;
  readonly status: TransactionStatus;
  readonly denialCode: string | null;
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

/** What an actor says of its money. */
export interface ActorEntry {
  readonly agentId: string;
  readonly budgetCents: number;
  readonly spentCents: number;
  readonly reservedCents: number;
  readonly openCount: number;
}

/** What an agent's record in MongoDB shows of its money. */
export type RecordEntry = Pick<ActorEntry, "agentId" | "spentCents" | "reservedCents">;

export interface ChainBooks {
  readonly spent: readonly SpentEvent[];
  readonly wallets: readonly WalletEntry[];
  /** What all tokens of the chain add up to, and where they are: wallets of every agent ever, accounts that were paid. */
  readonly supplyUnits: bigint;
  readonly heldUnits: bigint;
  /** Transactions that the service's key has in the chain. */
  readonly nonce: number;
  readonly recorded: readonly RecordedEntry[];
  /** Recorded transactions, of those that were looked up, that the chain knows nothing of. */
  readonly withoutReceipt: readonly Hash[];
}

export interface SpentEvent {
  readonly wallet: Address;
  readonly id: Hex;
  readonly to: Address;
  readonly units: bigint;
  readonly hash: Hash;
}

export interface WalletEntry {
  readonly agentId: string;
  readonly balanceUnits: bigint;
  readonly mintedUnits: bigint;
}

/** A transaction of the service's key as it was recorded before it was sent. */
export interface RecordedEntry {
  readonly purpose: string;
  readonly nonce: number;
  readonly hash: Hash;
}
