import type { AgentCommand, AgentReply } from "../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome } from "../../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../../src/domain/agent/policy.ts";
import type { AgentProfile, AgentSummary, WrittenSummary } from "../../src/domain/agent/state.ts";
import type { NamedAnswer } from "../../src/domain/budget/report.ts";
import type { BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import type { AgentShown, Books, KeysAtFirst, NamedBudget, Observer } from "./audit/observer.ts";

const KEPT = 30;

/** Remembers the last things that were observed, as values; they become text only when somebody has to read them. */
export class Trail implements Observer {
  readonly #observer: Observer;
  readonly #kept: { step: number; what: unknown[] }[] = [];
  #next = 0;
  step = 0;

  constructor(observer: Observer) {
    this.#observer = observer;
  }

  /** The newest last. */
  lines(): string[] {
    const inOrder = [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)];
    return inOrder.map(({ step, what }) => `${String(step)} ${what.map(text).join(" ")}`);
  }

  #note(...what: unknown[]): void {
    this.#kept[this.#next] = { step: this.step, what };
    this.#next = (this.#next + 1) % KEPT;
  }

  agentCreated(profile: AgentProfile, policy: BudgetPolicy, keys: KeysAtFirst): void {
    this.#note("created", profile, policy);
    this.#observer.agentCreated(profile, policy, keys);
  }

  agentAnswered(
    agentId: string,
    command: AgentCommand,
    reply: AgentReply,
    summary: AgentSummary,
    now: number,
  ): void {
    this.#note(agentId, command, "→", reply);
    this.#observer.agentAnswered(agentId, command, reply, summary, now);
  }

  agentShown(agentId: string, shown: AgentShown, now: number): void {
    this.#observer.agentShown(agentId, shown, now);
  }

  agentRecorded(agentId: string, summary: WrittenSummary): void {
    this.#observer.agentRecorded(agentId, summary);
  }

  rolledOver(actor: string, before: unknown, after: unknown): void {
    this.#note("continued as new", actor);
    this.#observer.rolledOver(actor, before, after);
  }

  createReplayed(agentId: string, isKeyDelivered: boolean, now: number): void {
    this.#note("create replayed", agentId, isKeyDelivered);
    this.#observer.createReplayed(agentId, isKeyDelivered, now);
  }

  budgetAnswered(command: BudgetCommand, reply: BudgetReply): void {
    this.#note("budget", command, "→", reply);
    this.#observer.budgetAnswered(command, reply);
  }

  budgetDecided(answers: readonly NamedAnswer[]): void {
    if (answers.length > 0) this.#note("budget decided", answers);
    this.#observer.budgetDecided(answers);
  }

  replacementRequested(command: BudgetCommand, named: readonly NamedBudget[]): void {
    this.#observer.replacementRequested(command, named);
  }

  replacementAnswered(command: BudgetCommand): void {
    this.#note("in force", command);
    this.#observer.replacementAnswered(command);
  }

  begins(transactionId: string, now: number): void {
    this.#note("begins", transactionId);
    this.#observer.begins(transactionId, now);
  }

  captured(transactionId: string, amountCents: number, now: number): void {
    this.#note("captured", transactionId, amountCents);
    this.#observer.captured(transactionId, amountCents, now);
  }

  reversed(transactionId: string): void {
    this.#note("given back", transactionId);
    this.#observer.reversed(transactionId);
  }

  railAnswered(transactionId: string, outcome: RailOutcome): void {
    this.#observer.railAnswered(transactionId, outcome);
  }

  recorded(payment: Payment): void {
    const { ask, denial, phase, request, revision, status } = payment;
    this.#note("recorded", request.transactionId, revision, status, phase, ask ?? "", denial?.code ?? "");
    this.#observer.recorded(payment);
  }

  clientAnswered(agentId: string, keyHash: string, transactionId: string): void {
    this.#observer.clientAnswered(agentId, keyHash, transactionId);
  }

  atRest(books: Books): void {
    this.#observer.atRest(books);
  }

  stirred(): void {
    this.#observer.stirred();
  }

  checked(agentId: string, amountCents: number, denialCode: string | null, now: number): void {
    this.#note("dry run", agentId, amountCents, denialCode);
    this.#observer.checked(agentId, amountCents, denialCode, now);
  }

  broke(what: string, error: unknown): void {
    this.#note("broke", what, String(error));
    this.#observer.broke(what, error);
  }
}

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
