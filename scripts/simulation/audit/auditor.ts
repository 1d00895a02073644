import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy, Denial } from "../../../src/domain/agent/policy.ts";
import type { AgentProfile, AgentSummary } from "../../../src/domain/agent/state.ts";
import type { BudgetCommand, BudgetReply } from "../../../src/domain/budget/commands.ts";
import type { NamedAnswer } from "../../../src/domain/budget/report.ts";
import { AgentBook, type BookedPayment, dayOf, isHeld, isMoney, type Verdict } from "./agent-book.ts";
import { CapBook } from "./cap-book.ts";
import { auditBooks, STATUS_BY_RAIL } from "./at-rest.ts";
import type { Books, NamedBudget, Observer } from "./observer.ts";
import { must, mustEqual, Violation } from "./violation.ts";

type Of<T extends { kind: string }, K extends T["kind"]> = Extract<T, { kind: K }>;
type Resolution = Of<AgentCommand, "approve" | "deny" | "cancel" | "expire">;

/** What may follow on a status (decisions.md section 5). What was settled and reversed since may be heard of as one. */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  pending: ["pending", "approved", "denied", "failed", "expired", "reversed"],
  approved: ["approved", "reversed"],
};

/**
 * Watches the service from outside and keeps books of its own, by the specification (decisions.md sections 3 to 5,
 * design.md): what each answer must be, and that the limits hold at every level at every moment. The first thing that is
 * wrong stays as `violation`.
 */
export class Auditor implements Observer {
  readonly agents = new Map<string, AgentBook>();
  readonly payments = new Map<string, BookedPayment>();
  readonly caps = new CapBook(this.agents);
  /** What has happened, how often. */
  readonly tally = new Map<string, number>();
  violation: Error | null = null;
  #isAtRest = false;
  readonly #named = new WeakMap<object, readonly NamedBudget[]>();

  agentCreated({ agentId, teamId }: AgentProfile, policy: BudgetPolicy): void {
    this.agents.set(agentId, new AgentBook(agentId, teamId, policy));
  }

  agentAnswered(
    agentId: string,
    command: AgentCommand,
    reply: AgentReply,
    summary: AgentSummary,
    now: number,
  ): void {
    this.#audit(() => {
      const book = this.agents.get(agentId);
      must(book !== undefined, `an unknown agent ${agentId} answered`);
      this.#expect(book, command, reply, now);
      mustEqual(summary.spentCents, book.spentCents, `spent by ${agentId}`);
      mustEqual(summary.reservedCents, book.reservedCents, `reserved by ${agentId}`);
      mustEqual(summary.lifecycle, book.lifecycle, `the life of ${agentId}`);
      mustEqual(summary.policyVersion, book.version, `the version of the policy of ${agentId}`);
      mustEqual(summary.policy, book.policy, `the policy of ${agentId}`);
      must(summary.revision >= book.revision, "an agent's revision fell");
      book.revision = summary.revision;
    });
  }

  replacementRequested(command: BudgetCommand, named: readonly NamedBudget[]): void {
    this.#named.set(command, named);
  }

  budgetAnswered(command: BudgetCommand, reply: BudgetReply): void {
    this.#audit(() => {
      if (command.kind === "report") {
        must(reply.kind === "reported", `a report was answered ${reply.kind}`);
        for (const answer of reply.answers) this.#answered(answer);
        const team = this.caps.of(command.report.teamId).decidedCents;
        const isCapped = team !== null || this.caps.of(null).decidedCents !== null;
        must(reply.exemptEpoch === null || !isCapped, "an agent under a cap was let pay without asking");
      }
      if (command.kind === "replace_project" || command.kind === "replace_team") {
        this.#replaced(command, reply);
      }
    });
  }

  budgetDecided(answers: readonly NamedAnswer[]): void {
    this.#audit(() => answers.forEach((answer) => this.#answered(answer)));
  }

  replacementAnswered(command: BudgetCommand): void {
    this.caps.settle(command);
  }

  captured(transactionId: string, amountCents: number, now: number): void {
    this.#audit(() => {
      const payment = this.#payment(transactionId);
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
      this.#count("captured");
    });
  }

  reversed(transactionId: string): void {
    this.#audit(() => {
      const payment = this.#payment(transactionId);
      must(payment.isCaptured && !payment.isReversed, `${transactionId} was given back for nothing`);
      payment.isReversed = true;
      this.#count("given back");
    });
  }

  railAnswered(transactionId: string, outcome: RailOutcome): void {
    const payment = this.payments.get(transactionId);
    if (payment !== undefined) payment.rail = nameOf(outcome);
  }

  recorded({ request, revision, status }: Payment): void {
    this.#audit(() => {
      const payment = this.#payment(request.transactionId);
      const { recorded } = payment;
      if (recorded !== null && recorded.revision > revision) return;
      if (recorded?.revision === revision) {
        mustEqual(status, recorded.status, `revision ${revision} of ${payment.id} was written as two things`);
        return;
      }
      const before = recorded?.status ?? "pending";
      must(CHANGES[before]?.includes(status) === true, `${payment.id} was ${before} and became ${status}`);
      must(status !== "approved" || payment.isCaptured, `${payment.id} is approved and was never paid`);
      payment.recorded = { revision, status };
    });
  }

  clientAnswered(agentId: string, keyHash: string, transactionId: string): void {
    this.#audit(() => {
      const known = this.agents.get(agentId)?.byKey.get(keyHash);
      mustEqual(transactionId, known?.id, "the transaction that a key was answered with");
    });
  }

  atRest(books: Books): void {
    this.#audit(() => {
      this.#isAtRest = true;
      this.caps.rest();
      auditBooks(this, books);
      this.#count("at rest");
    });
  }

  /**
   * Whether the rail has told somebody of an end that the agent has not heard of: who asked died over it, and the agent
   * hears of it when the rail is asked the next time.
   */
  get isBehindItsRail(): boolean {
    for (const payment of this.payments.values()) {
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
      const book = this.agents.get(agentId);
      must(book !== undefined, "an unknown agent was checked");
      const verdict = book.verdict(amountCents, now) ?? this.caps.verdict(book.teamId, amountCents, 0);
      mustEqual(denialCode, verdict?.code ?? null, `what a dry run of ${amountCents} by ${agentId} said`);
      this.#count("dry run");
    });
  }

  broke(what: string, error: unknown): void {
    this.violation ??= new Violation(`${what}: ${String(error)}`, { cause: error });
  }

  #audit(work: () => void): void {
    if (this.violation !== null) return;
    try {
      work();
    } catch (error) {
      this.violation = error instanceof Error ? error : new Error(String(error));
    }
  }

  #count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  #payment(transactionId: string): BookedPayment {
    const payment = this.payments.get(transactionId);
    must(payment !== undefined, `nobody decided ${transactionId}`);
    return payment;
  }

  #expect(book: AgentBook, command: AgentCommand, reply: AgentReply, now: number): void {
    switch (command.kind) {
      case "pay":
        return this.#expectPay(book, command, reply, now);
      case "confirm":
        return this.#expectConfirm(book, command, now);
      case "approve":
      case "deny":
      case "cancel":
      case "expire":
        return this.#expectResolution(book, command, reply, now);
      case "change_policy":
        return this.#expectPolicy(book, command, reply);
      case "pause":
      case "resume":
        return this.#expectLife(book, command.kind === "pause" ? "paused" : "active", reply);
      case "archive":
        return this.#expectArchive(book, reply, now);
      case "heed_budget":
        return this.#expectHeed(book, command);
      default:
        return;
    }
  }

  #expectPay(book: AgentBook, command: Of<AgentCommand, "pay">, reply: AgentReply, now: number): void {
    const { approvalWindowSeconds, request } = command;
    const known = book.byKey.get(request.keyHash);
    if (known !== undefined) {
      this.#count("replayed");
      return expectReplay(known, request.payloadHash, reply);
    }
    if (book.lifecycle === "archived")
      return mustEqual(reply.kind, "archived", "an archived agent's payment");
    must(reply.kind === "decided", `a new key was answered ${reply.kind}`);
    const { decision } = reply;
    const { amountCents } = request;
    const verdict = book.verdict(amountCents, now);
    expectDenial(decision.denial, verdict, `a payment of ${amountCents} by ${book.agentId}`);
    const needsPerson = verdict === null && book.needsPerson(amountCents);
    mustEqual(decision.approval !== null, needsPerson, "whether a person is asked");
    mustEqual([decision.createdAt, decision.day], [now, dayOf(now)], "when it was decided");
    mustEqual(decision.sequence, book.payments.length + 1, "the sequence");
    const expiresAt = now + approvalWindowSeconds * 1_000;
    if (decision.approval !== null)
      mustEqual(decision.approval.expiresAt, expiresAt, "the end of the window");
    const isAsked = decision.ask !== undefined;
    const isUnasked = verdict === null && !isAsked;
    if (isUnasked) this.caps.mustFit(book.teamId, amountCents, 0, `${book.agentId} did not ask`);
    const payment: BookedPayment = {
      id: request.transactionId,
      agentId: book.agentId,
      payloadHash: request.payloadHash,
      amountCents,
      createdAt: now,
      expiresAt,
      needsPerson,
      isAsked,
      status: verdict === null ? "pending" : "denied",
      isOver: verdict !== null,
      isCounted: verdict === null,
      day: dayOf(now),
      approvedAt: null,
      ask: isAsked ? "reserve" : null,
      reserveAnswer: null,
      recheckAnswer: null,
      isUnderCaps: isUnasked,
      isCaptured: false,
      isReversed: false,
      rail: null,
      recorded: null,
    };
    must(!this.payments.has(payment.id), `${payment.id} was decided twice`);
    this.payments.set(payment.id, payment);
    book.add(payment, request.keyHash);
    this.#count(verdict === null ? (needsPerson ? "held" : isAsked ? "asked" : "unasked") : verdict.code);
  }

  #change(book: AgentBook, payment: BookedPayment, change: Partial<BookedPayment>): void {
    const wasMoney = isMoney(payment.status);
    book.change(payment, change);
    if (wasMoney && !isMoney(payment.status)) this.caps.release(book.teamId, payment.amountCents);
  }

  /** The agent hears what the budget said, and then what the rail said. */
  #expectConfirm(
    book: AgentBook,
    { caps, outcome, transactionId }: Of<AgentCommand, "confirm">,
    now: number,
  ): void {
    const payment = this.#payment(transactionId);
    if (payment.isOver) return;
    if (caps !== undefined && payment.ask === caps.kind) {
      const said = caps.kind === "reserve" ? payment.reserveAnswer : payment.recheckAnswer;
      mustEqual(caps.answer.granted, said?.granted, `what the budget said to ${transactionId}`);
      if (caps.answer.granted) this.#granted(book, payment, now);
      else if (caps.kind === "recheck") {
        this.#count("failed by a cap");
        this.#change(book, payment, { ask: null, status: "failed", isOver: true });
      } else {
        this.#count(caps.answer.denial.code);
        this.#change(book, payment, { ask: null, status: "denied", isOver: true, isCounted: false });
      }
    }
    // What the rail speaks of was sent, so the budget had taken it.
    if (outcome !== null && payment.ask !== null && !isHeld(payment))
      this.#change(book, payment, { ask: null });
    const isSent = payment.ask === null && !isHeld(payment) && !payment.isOver;
    if (outcome !== null && isSent) this.#settle(book, payment, outcome.result);
  }

  /** An archived agent has nothing on hold. */
  #granted(book: AgentBook, payment: BookedPayment, now: number): void {
    const isEnded = book.lifecycle === "archived" && isHeld(payment);
    const status = now >= payment.expiresAt ? "expired" : "denied";
    this.#change(book, payment, isEnded ? { ask: null, status, isOver: true } : { ask: null });
  }

  #settle(book: AgentBook, payment: BookedPayment, outcome: RailOutcome): void {
    if (outcome.status === "pending") return;
    if (outcome.status === "failed" && payment.status !== "pending") return;
    const status = outcome.status === "settled" ? "approved" : outcome.status;
    if (status !== payment.status) this.#count(status);
    this.#change(book, payment, { status, isOver: outcome.status !== "settled" || outcome.final });
  }

  #expectResolution(book: AgentBook, command: Resolution, reply: AgentReply, now: number): void {
    const payment = this.#payment(command.transactionId);
    if (reply.kind === "not_open") return must(payment.isOver, `${payment.id} is not over, and not open`);
    must(reply.kind === "payment", `${command.kind} was answered ${reply.kind}`);
    const held = isHeld(payment);
    const inTime = held && now < payment.expiresAt;
    must(
      !held || payment.ask === null || payment.reserveAnswer?.granted === true,
      "a payment on hold that the caps did not take",
    );
    if (held) this.#resolve(book, payment, command, reply.payment, now);
    mustEqual(reply.changed, inTime, `whether ${command.kind} changed ${payment.id}`);
    mustEqual(reply.payment.status, payment.status, `what ${command.kind} made of ${payment.id}`);
  }

  #resolve(book: AgentBook, payment: BookedPayment, command: Resolution, told: Payment, now: number): void {
    this.#count(now >= payment.expiresAt ? `${command.kind} too late` : command.kind);
    const over = { isOver: true, ask: null };
    if (now >= payment.expiresAt || command.kind === "expire") {
      return this.#change(book, payment, { ...over, status: "expired" });
    }
    if (command.kind !== "approve") return this.#change(book, payment, { ...over, status: "denied" });
    const verdict = book.verdict(payment.amountCents, now, payment);
    if (verdict !== null) {
      expectDenial(told.denial, verdict, `the approval of ${payment.id}`);
      this.#count(`approve: ${verdict.code}`);
      return this.#change(book, payment, { ...over, status: "failed" });
    }
    const asksAgain = told.ask === "recheck";
    // What is spent today counts today, also when it was put on hold yesterday.
    this.#change(book, payment, { approvedAt: now, day: dayOf(now), ask: asksAgain ? "recheck" : null });
    const own = payment.isUnderCaps ? payment.amountCents : 0;
    if (!asksAgain) this.caps.mustFit(book.teamId, payment.amountCents, own, `${payment.id} was approved`);
  }

  #expectPolicy(book: AgentBook, command: Of<AgentCommand, "change_policy">, reply: AgentReply): void {
    if (book.lifecycle === "archived") return mustEqual(reply.kind, "archived", "an archived agent's policy");
    if (command.version !== book.version) {
      this.#count("stale policy");
      return mustEqual(reply, { kind: "version_conflict", policyVersion: book.version }, "a stale version");
    }
    book.policy = { ...book.policy, ...command.patch };
    book.version += 1;
    if (command.patch.budgetCents !== undefined) book.budgetByTeam = null;
    this.#count("policy changed");
    mustEqual(reply.kind === "policy" && reply.policyVersion, book.version, "the version of a new policy");
  }

  #expectLife(book: AgentBook, lifecycle: "active" | "paused", reply: AgentReply): void {
    if (book.lifecycle === "archived") return mustEqual(reply.kind, "archived", "an archived agent's life");
    const changed = book.lifecycle !== lifecycle;
    book.lifecycle = lifecycle;
    if (changed) this.#count(lifecycle === "paused" ? "paused" : "resumed");
    mustEqual(reply, { kind: "lifecycle", lifecycle, changed }, "a change of life");
  }

  #expectArchive(book: AgentBook, reply: AgentReply, now: number): void {
    must(reply.kind === "archive", `an archive was answered ${reply.kind}`);
    mustEqual(reply.changed, book.lifecycle !== "archived", "whether it was archived just now");
    if (!reply.changed) return;
    const held = book.held().filter(({ ask }) => ask === null);
    mustEqual(
      [...(reply.ended ?? [])].toSorted(),
      held.map(({ id }) => id).toSorted(),
      "what archiving ended",
    );
    for (const payment of held) {
      const status = now >= payment.expiresAt ? "expired" : "denied";
      this.#change(book, payment, { status, isOver: true, ask: null });
    }
    book.lifecycle = "archived";
    this.#count("archived");
  }

  #expectHeed(book: AgentBook, { budgetCents, epoch }: Of<AgentCommand, "heed_budget">): void {
    if (budgetCents === null || epoch <= book.budgetEpoch) return;
    book.budgetEpoch = epoch;
    if (book.lifecycle === "archived" || budgetCents === book.policy.budgetCents) return;
    book.policy = { ...book.policy, budgetCents };
    book.version += 1;
    this.#count("budget by team");
  }

  /** What is asked is answered once, and then always the same. */
  #answered({ granted, kind, transactionId, ...rest }: NamedAnswer): void {
    const payment = this.#payment(transactionId);
    const book = this.agents.get(payment.agentId);
    must(book !== undefined, "an answer for no agent");
    const before = kind === "reserve" ? payment.reserveAnswer : payment.recheckAnswer;
    if (before !== null) return mustEqual(granted, before.granted, `the budget's answer to ${transactionId}`);
    const denial = "denial" in rest ? rest.denial : null;
    const own = payment.isUnderCaps && isMoney(payment.status) ? payment.amountCents : 0;
    if (denial === null && isMoney(payment.status)) {
      this.caps.mustFit(book.teamId, payment.amountCents, own, `the budget took ${transactionId}`);
    }
    if (denial !== null) this.caps.mustExceed(book.teamId, payment.amountCents, own, denial);
    if (this.#isAtRest) {
      expectDenial(
        denial,
        this.caps.verdict(book.teamId, payment.amountCents, own),
        `the caps' word on ${transactionId}`,
      );
    }
    const answer =
      denial === null ? ({ granted: true } as const) : ({ granted: false, denial, at: 0 } as const);
    if (kind === "recheck") payment.recheckAnswer = answer;
    else this.#change(book, payment, { reserveAnswer: answer, isUnderCaps: denial === null });
    this.#count(denial === null ? `${kind} granted` : `${kind} refused`);
    // Granted to one that was ended meanwhile: given back when the budget hears of the end.
    if (denial === null && !isMoney(payment.status)) this.caps.release(book.teamId, payment.amountCents);
  }

  #replaced(command: Of<BudgetCommand, "replace_project" | "replace_team">, reply: BudgetReply): void {
    const own = command.kind === "replace_team" ? command.teamId : null;
    const { version } = this.caps.of(own);
    if (command.version !== version) {
      this.#count("stale budget");
      return mustEqual(reply, { kind: "stale", version }, "a budget replaced from a stale version");
    }
    if (!command.complete) return mustEqual(reply.kind, "incomplete", "a budget without all of its children");
    must(reply.kind === "replaced", `a replacement was answered ${reply.kind}`);
    this.#count("budget replaced");
    const teams = command.kind === "replace_project" ? command.teams : [];
    const changed = teams.filter(({ capCents, teamId }) => this.caps.of(teamId).decidedCents !== capCents);
    this.caps.decide(command, [{ teamId: own, capCents: command.capCents }, ...changed]);
    for (const { agentId, budgetCents } of this.#named.get(command) ?? []) {
      const book = this.agents.get(agentId);
      if (book !== undefined) book.budgetByTeam = budgetCents;
    }
  }
}

const nameOf = (outcome: RailOutcome): BookedPayment["rail"] =>
  outcome.status === "settled" && outcome.final ? "final" : outcome.status;

function expectReplay(known: BookedPayment, payloadHash: string, reply: AgentReply): void {
  must(reply.kind === "replayed", `a known key was answered ${reply.kind}`);
  mustEqual(reply.transactionId, known.id, "the transaction of a replay");
  mustEqual(reply.samePayload, known.payloadHash === payloadHash, "whether the payload is the same");
  mustEqual(reply.payment?.status ?? known.status, known.status, "the status in a replay");
}

function expectDenial(denial: Denial | null, verdict: Verdict | null, what: string): void {
  mustEqual(denial?.code ?? null, verdict?.code ?? null, what);
  mustEqual(denial?.details ?? null, verdict?.details ?? null, `${what}, the details`);
}
