import type { RailBooks } from "../../../src/domain/ledger/books.ts";
import type { Address, Hash, Hex } from "viem";
import type {
  AgentDocument,
  ApprovalDocument,
  ContainerDocument,
  TransactionDocument,
} from "../../../src/store/documents.ts";
import type { PaymentTexts, Rail, TransactionStatus } from "../../../src/domain/ledger/payment.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AccountSnapshot, LevelSnapshot } from "../../../src/messages/ledger.ts";

/** Sources of a comparison, as plain data. */

/** A payment's record, as far as rails are concerned. */
export interface PaymentEntry {
  readonly id: string;
  readonly agentId: string;
  readonly rail: Rail;
  /** The merchant, or the account on the chain. */
  readonly to: string;
  readonly amountCents: number;
  readonly authorizations: readonly RailBooks[];
  readonly status: TransactionStatus;
  readonly hash: string | null;
}

/** A payment that a wallet on the chain reports. */
export interface SpentEvent {
  readonly wallet: Address;
  readonly id: Hex;
  readonly to: Address;
  readonly units: bigint;
  readonly hash: Hash;
}

/** Sources of one agent. Its actor and account are read before its records. */
export interface AgentSources {
  readonly agentId: string;
  /** `lost`: there is no such actor; `silent`: it did not answer. */
  readonly actor: AgentStateView | "lost" | "silent";
  /** `none`: its project's ledger has none; `unknown`: there is no ledger to ask. */
  readonly account: AccountSnapshot | "none" | "unknown";
  /** The texts of payments whose ledger has dropped them, by transaction id, as the workflows have them that wait with the payments. */
  readonly texts: ReadonlyMap<string, PaymentTexts>;
  readonly record: AgentDocument | null;
  readonly transactions: readonly TransactionDocument[];
  readonly approvals: readonly ApprovalDocument[];
  /** Of payments that were made before, and have ended, approvals may have been removed; null: of none. */
  readonly approvalsRetainedSince: Date | null;
}

/** A project's ledger: its levels at one moment, and each account at a moment of its own. */
export interface LedgerSource {
  /** The project, and teams that a cap, rules or an account were ever under. */
  readonly levels: readonly LevelSnapshot[];
  readonly accounts: ReadonlyMap<string, AccountSnapshot>;
}

/** A project. Its ledger was read before its records. */
export interface ProjectSources {
  readonly organizationId: string;
  readonly projectId: string;
  /** `lost`: there is no such ledger; `silent`: it did not answer. */
  readonly ledger: LedgerSource | "lost" | "silent";
  /** Spending of agents without an account by their records, by team. */
  readonly droppedMc: ReadonlyMap<string, number>;
  readonly project: ContainerDocument | null;
  readonly teams: readonly ContainerDocument[];
}

export const paymentEntry = ({
  _id,
  agentId,
  amountCents,
  ledgerState,
  onChainTxHash,
  rail,
  recipient,
  status,
}: TransactionDocument): PaymentEntry => ({
  id: _id,
  agentId,
  authorizations: ledgerState.books?.authorizations ?? [],
  rail,
  to: recipient,
  amountCents,
  status,
  hash: onChainTxHash,
});
