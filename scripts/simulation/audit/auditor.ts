import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import type { AgentProfile, AgentSummary, WrittenSummary } from "../../../src/domain/agent/state.ts";
import type { BudgetCommand, BudgetReply } from "../../../src/domain/budget/commands.ts";
import type { NamedAnswer } from "../../../src/domain/budget/report.ts";
import { AgentAudit } from "./agent-audit.ts";
import { AgentBook, type BookedPayment } from "./agent-book.ts";
import { auditBooks, STATUS_BY_RAIL } from "./at-rest.ts";
import { BudgetAudit } from "./budget-audit.ts";
import { Ledger } from "./ledger.ts";
import type { AgentShown, Books, KeysAtFirst, NamedBudget, Observer } from "./observer.ts";
import { auditRecord } from "./record.ts";
import { auditShown, CHANGES } from "./shown.ts";
import { must, mustBeSame, mustEqual, Violation } from "./violation.ts";

/**
 * Watches the service from outside and keeps books of its own: what each answer must be, and that the limits hold at every
 * level at every moment. Whoever puts commands to actors, the simulation or a plain sequence, tells it. The first thing that
 * is wrong stays as `violation`.
 */
export class Auditor implements Observer {
  readonly #ledger = new Ledger();
  readonly #agentAudit = new AgentAudit(this.#ledger);
  readonly #budgetAudit = new BudgetAudit(this.#ledger);
  violation: Error | null = null;
  #isAtRest = false;
  readonly #named = new WeakMap<object, readonly NamedBudget[]>();

  /** What has happened, how often. */
  get tally(): ReadonlyMap<string, number> {
    return this.#ledger.tally;
  }

  agentCreated(profile: AgentProfile, policy: BudgetPolicy, keys: KeysAtFirst): void {
    this.#ledger.agents.set(profile.agentId, new AgentBook(profile, policy, keys));
  }

  agentAnswered(
    agentId: string,
    command: AgentCommand,
    reply: AgentReply,
    summary: AgentSummary,
    now: number,
  ): void {
    this.#audit(() => {
      const book = this.#agent(agentId);
      const usedBefore = book.usedCents;
      this.#agentAudit.expect(book, command, reply, now);
      auditRecord(book, summary);
      const { policy, usedCents } = book;
      must(usedCents <= Math.max(policy.budgetCents, usedBefore), "more was used than there is budget");
    });
  }

  agentShown(agentId: string, shown: AgentShown, now: number): void {
    this.#audit(() => auditShown(this.#agent(agentId), shown, this.#ledger.payments, now));
  }

  agentRecorded(agentId: string, { events = [] }: WrittenSummary): void {
    this.#audit(() => this.#agent(agentId).journal.write(events));
  }

  rolledOver(actor: string, before: unknown, after: unknown): void {
    this.#audit(() => mustBeSame(after, before, `continue-as-new lost something of ${actor}`));
  }

  /** Whoever answers a replay looks at the clock himself: the timer that erases the key is not relied on. */
  createReplayed(agentId: string, isKeyDelivered: boolean, now: number): void {
    this.#audit(() => {
      const isOver = this.#agent(agentId).keys.isWindowOver(now);
      must(!isKeyDelivered || !isOver, "a key was delivered after the window");
      must(isKeyDelivered || isOver, "a key was not delivered in the window");
    });
  }

  replacementRequested(command: BudgetCommand, named: readonly NamedBudget[]): void {
    this.#named.set(command, named);
  }

  budgetAnswered(command: BudgetCommand, reply: BudgetReply): void {
    this.#audit(() => {
      if (command.kind === "report") {
        must(reply.kind === "reported", `a report was answered ${reply.kind}`);
        for (const answer of reply.answers) this.#budgetAudit.answered(answer, this.#isAtRest);
        const team = this.#ledger.caps.of(command.report.teamId).decidedCents;
        const isCapped = team !== null || this.#ledger.caps.of(null).decidedCents !== null;
        must(reply.exemptEpoch === null || !isCapped, "an agent under a cap was let pay without asking");
      }
      if (command.kind === "replace_project" || command.kind === "replace_team") {
        this.#budgetAudit.replaced(command, this.#named.get(command) ?? [], reply);
      }
    });
  }

  budgetDecided(answers: readonly NamedAnswer[]): void {
    this.#audit(() => answers.forEach((answer) => this.#budgetAudit.answered(answer, this.#isAtRest)));
  }

  replacementAnswered(command: BudgetCommand): void {
    this.#ledger.caps.settle(command);
  }

  /** Somebody hands a payment to its rail: not while its agent is paused, once whoever paused it was answered. */
  begins(transactionId: string, now: number): void {
    this.#audit(() => {
      const payment = this.#ledger.payment(transactionId);
      const { quietAt } = this.#agent(payment.agentId);
      must(quietAt === null || now <= quietAt, `${transactionId} was sent while its agent was paused`);
    });
  }

  captured(transactionId: string, amountCents: number, now: number): void {
    this.#audit(() => {
      const payment = this.#ledger.payment(transactionId);
      must(!payment.isCaptured, `${transactionId} was paid twice`);
      mustEqual(amountCents, payment.amountCents, `what was paid for ${transactionId}`);
      must(payment.status === "pending", `${transactionId} was paid when it was ${payment.status}`);
      const { approvedAt, expiresAt, isAsked, needsPerson, recheckAnswer, reserveAnswer } = payment;
      must(!isAsked || reserveAnswer?.granted === true, `${transactionId} was paid before the caps took it`);
      const isApproved = approvedAt !== null && approvedAt < expiresAt && approvedAt <= now;
      must(!needsPerson || isApproved, `${transactionId} was paid without a person's approval`);
      const isRefused = payment.ask === "recheck" && recheckAnswer?.granted !== true;
      must(!isRefused, `${transactionId} was paid before the caps were asked again`);
      payment.isCaptured = true;
      this.#ledger.count("captured");
    });
  }

  reversed(transactionId: string): void {
    this.#audit(() => {
      const payment = this.#ledger.payment(transactionId);
      must(payment.isCaptured && !payment.isReversed, `${transactionId} was given back for nothing`);
      payment.isReversed = true;
      this.#ledger.count("given back");
    });
  }

  railAnswered(transactionId: string, outcome: RailOutcome): void {
    const payment = this.#ledger.payments.get(transactionId);
    if (payment !== undefined) payment.rail = nameOf(outcome);
  }

  /** A revision may be written by several, who must all mean the same by it. */
  recorded({ approval, phase, request, revision, status }: Payment): void {
    this.#audit(() => {
      const payment = this.#ledger.payment(request.transactionId);
      const { recorded, written } = payment;
      const text = `${status} ${phase} ${approval?.resolution ?? ""}`;
      const before = written.get(revision) ?? text;
      mustEqual(text, before, `revision ${revision} of ${payment.id} was written as two things`);
      written.set(revision, text);
      if (recorded !== null && recorded.revision >= revision) return;
      const was = recorded?.status ?? "pending";
      must(CHANGES[was]?.includes(status) === true, `${payment.id} was ${was} and became ${status}`);
      must(status !== "approved" || payment.isCaptured, `${payment.id} is approved and was never paid`);
      payment.recorded = { revision, status };
    });
  }

  clientAnswered(agentId: string, keyHash: string, transactionId: string): void {
    this.#audit(() => {
      const known = this.#ledger.agents.get(agentId)?.byKey.get(keyHash);
      mustEqual(transactionId, known?.id, "the transaction that a key was answered with");
    });
  }

  atRest(books: Books): void {
    this.#audit(() => {
      this.#isAtRest = true;
      this.#ledger.caps.rest();
      auditBooks(this.#ledger, books);
      this.#ledger.count("at rest");
    });
  }

  /**
   * Whether the rail has told somebody of an end that the agent has not heard of: who asked died over it, and the agent
   * hears of it when the rail is asked the next time.
   */
  get isBehindItsRail(): boolean {
    for (const payment of this.#ledger.payments.values()) {
      if (!payment.isOver && payment.rail !== null && STATUS_BY_RAIL[payment.rail] !== payment.status)
        return true;
    }
    return false;
  }

  stirred(): void {
    this.#isAtRest = false;
  }

  checked(agentId: string, amountCents: number, denialCode: string | null, now: number): void {
    this.#audit(() => {
      const book = this.#agent(agentId);
      const verdict =
        book.verdict(amountCents, now) ?? this.#ledger.caps.verdict(book.teamId, amountCents, 0);
      mustEqual(denialCode, verdict?.code ?? null, `what a dry run of ${amountCents} by ${agentId} said`);
      this.#ledger.count("dry run");
    });
  }

  broke(what: string, error: unknown): void {
    this.violation ??= new Violation(`${what}: ${String(error)}`, { cause: error });
  }

  #agent(agentId: string): AgentBook {
    const book = this.#ledger.agents.get(agentId);
    must(book !== undefined, `nobody created ${agentId}`);
    return book;
  }

  #audit(work: () => void): void {
    if (this.violation !== null) return;
    try {
      work();
    } catch (error) {
      this.violation = error instanceof Error ? error : new Error(String(error));
    }
  }
}

const nameOf = (outcome: RailOutcome): BookedPayment["rail"] =>
  outcome.status === "settled" && outcome.final ? "final" : outcome.status;
