import type { FirstKey } from "../../../src/domain/agent/access.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { RailBooks } from "../../../src/domain/ledger/books.ts";
import type { Payment, RailOutcome } from "../../../src/domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../../../src/domain/agent/state.ts";
import type { BudgetPolicy } from "../../../src/domain/ledger/policy.ts";
import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import type { AccountSummary, Cap, LedgerBounds } from "../../../src/domain/ledger/state.ts";
import type { AccountView, AccountSnapshot, CapsView } from "../../../src/messages/ledger.ts";

/** The service seen from outside: messages to its parts, their answers, and the books of others. */
export interface Observer {
  /** An agent's actor was started with its first key; its account was opened before. */
  agentCreated(profile: AgentProfile, firstKey: FirstKey): void;
  /** An agent's actor has answered a command; its record is as `summary` says afterwards. */
  agentAnswered(answered: AgentAnswered): void;
  ledgerAnswered(command: LedgerCommand, reply: LedgerReply, shown: LedgerShown): void;
  /** An actor goes on with its state as it came through continue-as-new. */
  rolledOver(actor: string, before: unknown, after: unknown): void;
  /** Records were written; older ones than there are, too. */
  accountRecorded(summary: AccountSummary): void;
  agentRecorded(summary: AgentSummary): void;
  paymentRecorded(payment: Payment): void;
  /** The rail has accepted a payment, once. */
  captured(transactionId: string, amountMc: number): void;
  railAnswered(transactionId: string, outcome: RailOutcome): void;
  /** Clients were answered. */
  clientAnswered(agentId: string, keyHash: string, transactionId: string): void;
  pauseAnswered(agentId: string): void;
  /** All agents of a team or the project were stopped, by this request. */
  stopAnswered(requestId: string): void;
  archiveAnswered(agentId: string, record: AgentSummary | undefined): void;
  /** A key was revoked, or replaced by this one. */
  keyAnswered(agentId: string, deadKeyId: string | null): void;
  capsAnswered(
    caps: readonly { readonly teamId: string | null; readonly cap: Cap; readonly recorded: Cap }[],
  ): void;
  rulesAnswered(teamId: string | null, version: number): void;
  /** The project (null), a team or an agent forbids these recipients. */
  restrictionsAnswered(level: string | null, version: number, never: ReadonlySet<string>): void;
  /** A dry run was answered, with nothing under way: the code that would deny the payment, if any. */
  checked(agentId: string, amountCents: number, denialCode: string | null, now: number): void;
  /** Nothing is under way: all books are laid open. */
  atRest(books: Books): void;
  /** A part of the service threw where nothing should. */
  broke(what: string, error: unknown): void;
}

export interface AgentAnswered {
  readonly agentId: string;
  readonly command: AgentCommand;
  readonly reply: AgentReply;
  readonly summary: AgentSummary;
  readonly now: number;
}

/** Figures of the ledger after its answer. */
export interface LedgerShown {
  /** By the clock of its engine, which may go back. */
  readonly now: number;
  readonly bounds: LedgerBounds;
  readonly caps: CapsView;
  /** Of the agent that the command is about. */
  readonly account: AccountView | null;
}

/** Everybody's books when the world is at rest. */
export interface Books {
  readonly now: number;
  readonly caps: CapsView;
  readonly accounts: ReadonlyMap<string, AccountSnapshot & { readonly view: AccountView }>;
  /** Agents' actors that run. */
  readonly lives: ReadonlyMap<string, AgentSummary>;
  readonly records: ReadonlyMap<string, RecordShown>;
  readonly recordedCaps: ReadonlyMap<string | null, Cap>;
  readonly paymentRecords: ReadonlyMap<string, Payment>;
  /** The payments that people are asked to look at. */
  readonly pendingApprovals: ReadonlySet<string>;
  /** Books of the network by transaction. */
  readonly network: ReadonlyMap<string, readonly RailBooks[]>;
}

/** An agent's record: what its actor and what its ledger have decided. */
export interface RecordShown {
  readonly life: AgentSummary;
  readonly account: AccountSummary;
}

export type { BudgetPolicy };
