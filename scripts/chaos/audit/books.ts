import type { Hash } from "viem";
import type {
  LedgerEntry,
  PaymentEntry,
  ProjectBooks,
  SpentEvent,
} from "../../../server/admin/reconcile/books.ts";
import type { CapOver, PayingAgent } from "../tenant.ts";
import type { Ticket } from "../tickets.ts";
import type { ApprovalEntry, Arrival, DeliveryEntry } from "./told.ts";

/** Everything that is compared, as it was read from MongoDB, the chain and Temporal; plain data, so that tests can alter it. */
export interface Books {
  readonly agents: readonly PayingAgent[];
  readonly tickets: readonly Ticket[];
  readonly transactions: readonly TransactionEntry[];
  readonly approvals: readonly ApprovalEntry[];
  readonly ledger: readonly LedgerEntry[];
  readonly actors: readonly ActorEntry[];
  readonly records: readonly RecordEntry[];
  readonly chain: ChainBooks;
  /** Caps that are set, which were never above what they are now. */
  readonly caps: readonly CapOver[];
  readonly projects: readonly ProjectBooks[];
  readonly told: readonly ToldBooks[];
}

/** A payment's record, with what tells whether every decision is there. */
export interface TransactionEntry extends PaymentEntry {
  readonly keyHash: string;
  readonly sequence: number;
  readonly denialCode: string | null;
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

/** What one organization was told by webhook, at its endpoint for everything. */
export interface ToldBooks {
  /** All its agents, as their records have them. */
  readonly agentIds: readonly string[];
  readonly arrivals: readonly Arrival[];
  /** Requests that were not genuine, each in a line. */
  readonly forged: readonly string[];
  /** What the service has written down of the deliveries. */
  readonly deliveries: readonly DeliveryEntry[];
}

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
