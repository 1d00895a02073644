import type {
  AgentDocument,
  ApprovalDocument,
  ContainerDocument,
  TransactionDocument,
} from "../../../src/store/documents.ts";
import type { PaymentTexts } from "../../../src/domain/ledger/payment.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AccountSnapshot, LevelSnapshot } from "../../../src/messages/ledger.ts";

/** What is compared, as it was read; plain data. */

/** What there is of an agent. Its actor and its account were read before its records. */
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
  /** What the records say that agents without an account have spent, by team. */
  readonly droppedMc: ReadonlyMap<string, number>;
  readonly project: ContainerDocument | null;
  readonly teams: readonly ContainerDocument[];
}
