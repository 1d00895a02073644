import type {
  AgentDocument,
  ApprovalDocument,
  ContainerDocument,
  TransactionDocument,
} from "../../../src/store/documents.ts";
import type { PaymentTexts } from "../../../src/domain/ledger/payment.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AccountSnapshot, LevelSnapshot } from "../../../src/messages/ledger.ts";

/** Sources of an agent. Its actor and its account were read before its records. */
export interface AgentSources {
  readonly agentId: string;
  /** `lost`: there is no such actor; `silent`: it did not answer. */
  readonly actor: AgentStateView | "lost" | "silent";
  /** `none`: not in the project's ledger; `unknown`: there is no ledger to ask. */
  readonly account: AccountSnapshot | "none" | "unknown";
  /**
   * Texts of payments that their ledger has dropped, by transaction id. Read from the workflows that still wait for
   * these payments.
   */
  readonly texts: ReadonlyMap<string, PaymentTexts>;
  readonly record: AgentDocument | null;
  readonly transactions: readonly TransactionDocument[];
  readonly approvals: readonly ApprovalDocument[];
  /**
   * Approvals of payments that were created before this time and have ended may have been removed; null if none were.
   */
  readonly approvalsRetainedSince: Date | null;
}

/** A project's ledger: all levels at one time, each account at a time of its own. */
export interface LedgerSource {
  /** The project, and every team that ever had a cap, rules or an account. */
  readonly levels: readonly LevelSnapshot[];
  readonly accounts: ReadonlyMap<string, AccountSnapshot>;
}

/** Sources of a project. Its ledger was read before its records. */
export interface ProjectSources {
  readonly organizationId: string;
  readonly projectId: string;
  /** `lost`: there is no such ledger; `silent`: it did not answer. */
  readonly ledger: LedgerSource | "lost" | "silent";
  /** Spending by agents without an account, according to the records, by team. */
  readonly droppedMc: ReadonlyMap<string, number>;
  readonly project: ContainerDocument | null;
  readonly teams: readonly ContainerDocument[];
}
