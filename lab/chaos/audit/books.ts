import type { Hash } from "viem";
import type { PaymentEntry } from "../../../src/rails/findings.ts";
import type { PocketSources } from "../../../src/rails/pocket/reconcile.ts";
import type { SpentEvent } from "../../../src/rails/wallet/spent-events.ts";
import type { ShownBreach } from "../../../src/domain/ledger/books.ts";
import type { BudgetPolicy } from "../../../src/domain/ledger/policy.ts";
import type { CardLedgerDocument } from "../../../src/rails/card/network-books.ts";
import type { Cap, Totals } from "../../../src/domain/ledger/state.ts";
import type { Stopped } from "../changes.ts";
import type { ForeignTransaction } from "../foreign.ts";
import type { LimitThen } from "../../../src/domain/ledger/measures.ts";
import type { RaiseRequestDocument } from "../../../src/store/raise-documents.ts";
import type { Restricted } from "../limit-changes.ts";
import type { CapOver, PayingAgent, SpendLimitOver } from "../tenant.ts";
import type { Ticket } from "../tickets.ts";
import type { SentEntry } from "./sent.ts";
import type { ApprovalEntry, Arrival, DeliveryEntry } from "./delivered.ts";

/** Everything that is compared, as it was read from MongoDB, the chain and Temporal; plain data, so that tests can alter it. */
export interface Books {
  readonly agents: readonly PayingAgent[];
  readonly tickets: readonly Ticket[];
  readonly transactions: readonly TransactionEntry[];
  readonly approvals: readonly ApprovalEntry[];
  /** The entries of the cards' network. */
  readonly cardLedger: readonly CardLedgerDocument[];
  /** Payments that reached a rail since the run began; null: MongoDB's log does not go back as far. */
  readonly sent: readonly SentEntry[] | null;
  /** Accounts that projects' ledgers have. */
  readonly accounts: readonly AccountEntry[];
  /** Agents' actors that run. */
  readonly actors: readonly ActorEntry[];
  readonly records: readonly RecordEntry[];
  /** Projects and teams, as their ledgers and their records have them. */
  readonly levels: readonly LevelEntry[];
  readonly chain: ChainBooks;
  /** The highest that each cap may have been since all of its usage fitted. */
  readonly caps: readonly (CapOver & { readonly projectId: string })[];
  /** When agents could not pay. */
  readonly stopped: readonly Stopped[];
  readonly restricted: readonly Restricted[];
  /** The highest amounts that periods' limits were ever set to. */
  readonly spendLimits: readonly SpendLimitOver[];
  readonly decisions: readonly DecisionEntry[];
  readonly raises: readonly RaiseEntry[];
  readonly delivered: readonly DeliveredToEndpoint[];
}

/** A payment's first decision, as the audit log has it: with all limits of its agent, team and project. */
export interface DecisionEntry {
  readonly id: string;
  readonly outcome: string;
  readonly amountCents: number;
  readonly limits: readonly {
    readonly level: LimitThen[0];
    readonly limit: LimitThen[1];
    readonly value: number;
    readonly used: number;
  }[];
}

export interface RaiseEntry extends Pick<
  RaiseRequestDocument,
  "agentId" | "teamId" | "projectId" | "status" | "raised"
> {
  readonly id: string;
}

/** A payment's record, with what tells whether every decision is there. */
export interface TransactionEntry extends PaymentEntry {
  readonly keyHash: string;
  readonly sequence: number;
  readonly denialCode: string | null;
  readonly requestedCents: number;
  readonly breach: readonly ShownBreach[] | null;
  readonly createdAt: Date;
  /** Time of a person's approval; null: there was none, or it failed. */
  readonly approvedAt: Date | null;
  readonly projectId: string;
  readonly teamId: string;
}

/** Fields that an agent's account and its record share. */
export interface Shown {
  readonly agentId: string;
  readonly name: string;
  readonly keyId: string | null;
  readonly state: "active" | "paused" | "archived";
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  readonly spentCents: number;
  readonly reservedCents: number;
}

export interface AccountEntry extends Shown {
  /** Number of decided payments. */
  readonly sequence: number;
  readonly openCount: number;
}

export type RecordEntry = Shown;

/** An agent's life by its actor. */
export interface ActorEntry extends Pick<Shown, "agentId" | "name" | "keyId" | "state"> {
  /** Its create's window is still open: until then its actor runs. */
  readonly isWindowOpen: boolean;
}

export interface LevelEntry {
  readonly projectId: string;
  /** Null: the project itself. */
  readonly teamId: string | null;
  readonly cap: Cap;
  readonly totals: Totals;
  readonly recordedCap: Cap;
}

/** Requests that one organization's endpoint for everything received. */
export interface DeliveredToEndpoint {
  /** All its agents, as their records have them. */
  readonly agentIds: readonly string[];
  readonly arrivals: readonly Arrival[];
  /** Requests that were not genuine, each in a line. */
  readonly forged: readonly string[];
  /** Deliveries by the service's records. */
  readonly deliveries: readonly DeliveryEntry[];
}

export interface ChainBooks {
  readonly spent: readonly SpentEvent[];
  readonly pockets: Pick<PocketSources, "events" | "pockets" | "signed">;
  readonly wallets: readonly WalletEntry[];
  /** Total supply of the token, and where it is: wallets and pockets of every agent ever, accounts that were paid. */
  readonly supplyUnits: bigint;
  readonly heldUnits: bigint;
  /** Transactions that the service's key has in the chain. */
  readonly nonce: number;
  readonly recorded: readonly RecordedEntry[];
  /** Foreign transactions of the service's key. */
  readonly foreign: readonly ForeignTransaction[];
  /** Recorded transactions, of those that were looked up and were not replaced by a foreign one, that the chain knows nothing of. */
  readonly withoutReceipt: readonly Hash[];
}

export interface WalletEntry {
  readonly agentId: string;
  /** Of the wallet and its pocket. */
  readonly balanceUnits: bigint;
  readonly mintedUnits: bigint;
}

/** A transaction of the service's key as it was recorded before it was sent. */
export interface RecordedEntry {
  readonly purpose: string;
  readonly nonce: number;
  readonly hash: Hash;
  /** Its nonce is proven to have another transaction. */
  readonly isReplaced: boolean;
}

/**
 * The nonces that have a transaction, the service's own or another one, in their order. A foreign one that the chain has lost with its newest
 * blocks, and nothing came after, has none.
 */
export function usedNonces({ foreign, nonce, recorded }: Pick<ChainBooks, "foreign" | "nonce" | "recorded">) {
  const own = recorded.map((entry) => entry.nonce);
  const end = Math.max(nonce, ...own);
  const others = foreign.map((each) => each.nonce).filter((each) => each < end);
  return [...new Set([...own, ...others])].toSorted((one, other) => one - other);
}

/** Whether a foreign transaction has a recorded one's nonce, and the service knows. */
export const isReplacedBy = (
  { isReplaced, nonce }: RecordedEntry,
  foreign: readonly ForeignTransaction[],
): boolean => isReplaced && foreign.some((other) => other.nonce === nonce);
