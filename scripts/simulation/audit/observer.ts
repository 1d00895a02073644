import type { AgentAccess, FirstKey } from "../../../src/domain/agent/access.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome, TransactionStatus } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import type { AgentProfile, AgentSummary, WrittenSummary } from "../../../src/domain/agent/state.ts";
import type { NamedAnswer } from "../../../src/domain/budget/report.ts";
import type { BudgetCommand, BudgetReply } from "../../../src/domain/budget/commands.ts";

/** What can be seen of the service from outside: what its parts were told, what they answered, and the books of others. */
export interface Observer {
  agentCreated(profile: AgentProfile, policy: BudgetPolicy, keys: KeysAtFirst): void;
  /** An agent's actor has answered a command; its record is as `summary` says afterwards. */
  agentAnswered(
    agentId: string,
    command: AgentCommand,
    reply: AgentReply,
    summary: AgentSummary,
    now: number,
  ): void;
  /** What an agent's actor keeps is laid open. */
  agentShown(agentId: string, shown: AgentShown, now: number): void;
  /** An agent's record was written, with what it tells of; an older one than there is, too. */
  agentRecorded(agentId: string, summary: WrittenSummary): void;
  /** An actor goes on with its state as it came through continue-as-new. */
  rolledOver(actor: string, before: unknown, after: unknown): void;
  /** A replay of an agent's create was answered, with its first key or without. */
  createReplayed(agentId: string, isKeyDelivered: boolean, now: number): void;
  budgetAnswered(command: BudgetCommand, reply: BudgetReply): void;
  /** The budget has made up its mind about these, without telling yet. */
  budgetDecided(answers: readonly NamedAnswer[]): void;
  /** A budget is about to be replaced by this command; `named`: all that the request says of agents. */
  replacementRequested(command: BudgetCommand, named: readonly NamedBudget[]): void;
  /** Who replaced a budget by this command was answered that it is done. */
  replacementAnswered(command: BudgetCommand): void;
  /** The rail took money, once; or gave it back. */
  begins(transactionId: string, now: number): void;
  captured(transactionId: string, amountCents: number, now: number): void;
  reversed(transactionId: string): void;
  railAnswered(transactionId: string, outcome: RailOutcome): void;
  /** The record of a payment was written, and is the newest. */
  recorded(payment: Payment): void;
  /** What a client was answered to a payment. */
  clientAnswered(agentId: string, keyHash: string, transactionId: string): void;
  /** Nothing is under way: all books are laid open. */
  atRest(books: Books): void;
  /** Something is under way again. */
  stirred(): void;
  /** A dry run was answered, with nothing under way: the code that would deny the payment, if any. */
  checked(agentId: string, amountCents: number, denialCode: string | null, now: number): void;
  /** A part of the service threw where nothing should. */
  broke(what: string, error: unknown): void;
}

/** What is known of an agent's keys when it is created. */
export interface KeysAtFirst {
  /** What its actor was told; null: an actor from before actors knew of keys. */
  readonly firstKey: FirstKey | null;
  /** The active key as the agent's record has it. */
  readonly recordedKeyId: string | null;
}

export interface NamedBudget {
  readonly agentId: string;
  readonly budgetCents: number;
}

/** An agent's record, the usage that its budget shows, and what else its actor keeps. */
export interface AgentShown extends AgentSummary {
  /** How many payments it has decided. */
  readonly sequence: number;
  /** Null: it does not know of its keys. */
  readonly access: AgentAccess | null;
  readonly open: readonly OpenShown[];
  readonly usage: {
    readonly todayCents: number;
    readonly todayCount: number;
    readonly lastHourCount: number;
  };
}

/** A payment that its agent's actor has something left to do for. */
export interface OpenShown {
  readonly transactionId: string;
  readonly status: TransactionStatus;
  readonly isHeld: boolean;
}

export interface UsedCents {
  readonly spentCents: number;
  readonly reservedCents: number;
}

/** The totals of everyone who keeps some, when the world is at rest. */
export interface Books {
  readonly now: number;
  readonly agents: ReadonlyMap<string, AgentShown>;
  /** The agents' records. */
  readonly agentRecords: ReadonlyMap<string, WrittenSummary>;
  readonly paymentRecords: ReadonlyMap<string, Payment>;
  /** The payments that people are asked to look at. */
  readonly pendingApprovals: ReadonlySet<string>;
  /** What the project's budget counts for the project, and for each team. */
  readonly budget: { readonly project: UsedCents; readonly teams: Readonly<Record<string, UsedCents>> };
  /** Cents taken and not given back, by transaction. */
  readonly ledger: ReadonlyMap<string, number>;
}
