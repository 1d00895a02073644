import type { BudgetCommand, BudgetReply } from "../../../src/domain/budget/commands.ts";
import type { NamedAnswer } from "../../../src/domain/budget/report.ts";
import { isMoney } from "./agent-book.ts";
import { expectDenial, type Ledger } from "./ledger.ts";
import type { NamedBudget } from "./observer.ts";
import { must, mustEqual } from "./violation.ts";

export type Replacement = Extract<BudgetCommand, { kind: "replace_project" | "replace_team" }>;

/** What a project's budget must answer, by the books, which follow the answers. */
export class BudgetAudit {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** What is asked is answered once, and then always the same. */
  answered({ granted, kind, transactionId, ...rest }: NamedAnswer, isAtRest: boolean): void {
    const payment = this.#ledger.payment(transactionId);
    const book = this.#ledger.agents.get(payment.agentId);
    must(book !== undefined, "an answer for no agent");
    const before = kind === "reserve" ? payment.reserveAnswer : payment.recheckAnswer;
    if (before !== null) return mustEqual(granted, before.granted, `the budget's answer to ${transactionId}`);
    const denial = "denial" in rest ? rest.denial : null;
    const own = payment.isUnderCaps && isMoney(payment.status) ? payment.amountCents : 0;
    if (denial === null && isMoney(payment.status)) {
      this.#ledger.caps.mustFit(book.teamId, payment.amountCents, own, `the budget took ${transactionId}`);
    }
    if (denial !== null) this.#ledger.caps.mustExceed(book.teamId, payment.amountCents, own, denial);
    if (isAtRest) {
      expectDenial(
        denial,
        this.#ledger.caps.verdict(book.teamId, payment.amountCents, own),
        `the caps' word on ${transactionId}`,
      );
    }
    const answer =
      denial === null ? ({ granted: true } as const) : ({ granted: false, denial, at: 0 } as const);
    if (kind === "recheck") payment.recheckAnswer = answer;
    else this.#ledger.change(book, payment, { reserveAnswer: answer, isUnderCaps: denial === null });
    this.#ledger.count(denial === null ? `${kind} granted` : `${kind} refused`);
    // Granted to one that was ended meanwhile: given back when the budget hears of the end.
    if (denial === null && !isMoney(payment.status))
      this.#ledger.caps.release(book.teamId, payment.amountCents);
  }

  replaced(command: Replacement, named: readonly NamedBudget[], reply: BudgetReply): void {
    const own = command.kind === "replace_team" ? command.teamId : null;
    const { version } = this.#ledger.caps.of(own);
    if (command.version !== version) {
      this.#ledger.count("stale budget");
      return mustEqual(reply, { kind: "stale", version }, "a budget replaced from a stale version");
    }
    if (!command.complete) return mustEqual(reply.kind, "incomplete", "a budget without all of its children");
    must(reply.kind === "replaced", `a replacement was answered ${reply.kind}`);
    this.#ledger.count("budget replaced");
    const teams = command.kind === "replace_project" ? command.teams : [];
    const changed = teams.filter(
      ({ capCents, teamId }) => this.#ledger.caps.of(teamId).decidedCents !== capCents,
    );
    this.#ledger.caps.decide(command, [{ teamId: own, capCents: command.capCents }, ...changed]);
    for (const { agentId, budgetCents } of named) {
      const book = this.#ledger.agents.get(agentId);
      if (book !== undefined) book.budgetByTeam = budgetCents;
    }
  }
}
