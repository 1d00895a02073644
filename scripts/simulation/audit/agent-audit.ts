import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome } from "../../../src/domain/agent/payment.ts";
import { type AgentBook, type BookedPayment, dayOf, isHeld } from "./agent-book.ts";
import { expectDenial, type Ledger } from "./ledger.ts";
import { must, mustEqual } from "./violation.ts";

type Of<T extends { kind: string }, K extends T["kind"]> = Extract<T, { kind: K }>;
type Resolution = Of<AgentCommand, "approve" | "deny" | "cancel" | "expire">;

/** Agents' answers, held against the specification (decisions.md sections 3 and 5). */
export class AgentAudit {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** What an agent's answer must be, by the books, which follow it. */
  expect(book: AgentBook, command: AgentCommand, reply: AgentReply, now: number): void {
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
      this.#ledger.count("replayed");
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
    if (isUnasked) this.#ledger.caps.mustFit(book.teamId, amountCents, 0, `${book.agentId} did not ask`);
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
    must(!this.#ledger.payments.has(payment.id), `${payment.id} was decided twice`);
    this.#ledger.payments.set(payment.id, payment);
    book.add(payment, request.keyHash);
    this.#ledger.count(
      verdict === null ? (needsPerson ? "held" : isAsked ? "asked" : "unasked") : verdict.code,
    );
  }

  /** The agent hears what the budget said, and then what the rail said. */
  #expectConfirm(
    book: AgentBook,
    { caps, outcome, transactionId }: Of<AgentCommand, "confirm">,
    now: number,
  ): void {
    const payment = this.#ledger.payment(transactionId);
    if (payment.isOver) return;
    if (caps !== undefined && payment.ask === caps.kind) {
      const said = caps.kind === "reserve" ? payment.reserveAnswer : payment.recheckAnswer;
      mustEqual(caps.answer.granted, said?.granted, `what the budget said to ${transactionId}`);
      if (caps.answer.granted) this.#granted(book, payment, now);
      else if (caps.kind === "recheck") {
        this.#ledger.count("failed by a cap");
        this.#ledger.change(book, payment, { ask: null, status: "failed", isOver: true });
      } else {
        this.#ledger.count(caps.answer.denial.code);
        this.#ledger.change(book, payment, { ask: null, status: "denied", isOver: true, isCounted: false });
      }
    }
    // What the rail speaks of was sent, so the budget had taken it.
    if (outcome !== null && payment.ask !== null && !isHeld(payment))
      this.#ledger.change(book, payment, { ask: null });
    const isSent = payment.ask === null && !isHeld(payment) && !payment.isOver;
    if (outcome !== null && isSent) this.#settle(book, payment, outcome.result);
  }

  /** An archived agent has nothing on hold. */
  #granted(book: AgentBook, payment: BookedPayment, now: number): void {
    const isEnded = book.lifecycle === "archived" && isHeld(payment);
    const status = now >= payment.expiresAt ? "expired" : "denied";
    this.#ledger.change(book, payment, isEnded ? { ask: null, status, isOver: true } : { ask: null });
  }

  #settle(book: AgentBook, payment: BookedPayment, outcome: RailOutcome): void {
    if (outcome.status === "pending") return;
    if (outcome.status === "failed" && payment.status !== "pending") return;
    const status = outcome.status === "settled" ? "approved" : outcome.status;
    if (status !== payment.status) this.#ledger.count(status);
    this.#ledger.change(book, payment, { status, isOver: outcome.status !== "settled" || outcome.final });
  }

  #expectResolution(book: AgentBook, command: Resolution, reply: AgentReply, now: number): void {
    const payment = this.#ledger.payment(command.transactionId);
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
    this.#ledger.count(now >= payment.expiresAt ? `${command.kind} too late` : command.kind);
    const over = { isOver: true, ask: null };
    if (now >= payment.expiresAt || command.kind === "expire") {
      return this.#ledger.change(book, payment, { ...over, status: "expired" });
    }
    if (command.kind !== "approve") return this.#ledger.change(book, payment, { ...over, status: "denied" });
    const verdict = book.verdict(payment.amountCents, now, payment);
    if (verdict !== null) {
      expectDenial(told.denial, verdict, `the approval of ${payment.id}`);
      this.#ledger.count(`approve: ${verdict.code}`);
      return this.#ledger.change(book, payment, { ...over, status: "failed" });
    }
    const asksAgain = told.ask === "recheck";
    // What is spent today counts today, also when it was put on hold yesterday.
    this.#ledger.change(book, payment, {
      approvedAt: now,
      day: dayOf(now),
      ask: asksAgain ? "recheck" : null,
    });
    const own = payment.isUnderCaps ? payment.amountCents : 0;
    if (!asksAgain)
      this.#ledger.caps.mustFit(book.teamId, payment.amountCents, own, `${payment.id} was approved`);
  }

  #expectPolicy(book: AgentBook, command: Of<AgentCommand, "change_policy">, reply: AgentReply): void {
    if (book.lifecycle === "archived") return mustEqual(reply.kind, "archived", "an archived agent's policy");
    if (command.version !== book.version) {
      this.#ledger.count("stale policy");
      return mustEqual(reply, { kind: "version_conflict", policyVersion: book.version }, "a stale version");
    }
    book.policy = { ...book.policy, ...command.patch };
    book.version += 1;
    if (command.patch.budgetCents !== undefined) book.budgetByTeam = null;
    this.#ledger.count("policy changed");
    mustEqual(reply.kind === "policy" && reply.policyVersion, book.version, "the version of a new policy");
  }

  #expectLife(book: AgentBook, lifecycle: "active" | "paused", reply: AgentReply): void {
    if (book.lifecycle === "archived") return mustEqual(reply.kind, "archived", "an archived agent's life");
    const changed = book.lifecycle !== lifecycle;
    book.lifecycle = lifecycle;
    if (changed) this.#ledger.count(lifecycle === "paused" ? "paused" : "resumed");
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
      this.#ledger.change(book, payment, { status, isOver: true, ask: null });
    }
    book.lifecycle = "archived";
    this.#ledger.count("archived");
  }

  /** Of one replacement an agent hears once: what is told again does not undo what a person has changed since. */
  #expectHeed(book: AgentBook, command: Of<AgentCommand, "heed_budget">): void {
    const { budgetCents, epoch, budgetEpoch = epoch } = command;
    if (budgetCents === null || budgetEpoch <= book.budgetEpoch) return;
    book.budgetEpoch = budgetEpoch;
    if (book.lifecycle === "archived" || budgetCents === book.policy.budgetCents) return;
    book.policy = { ...book.policy, budgetCents };
    book.version += 1;
    this.#ledger.count("budget by team");
  }
}

function expectReplay(known: BookedPayment, payloadHash: string, reply: AgentReply): void {
  must(reply.kind === "replayed", `a known key was answered ${reply.kind}`);
  mustEqual(reply.transactionId, known.id, "the transaction of a replay");
  mustEqual(reply.samePayload, known.payloadHash === payloadHash, "whether the payload is the same");
  mustEqual(reply.payment?.status ?? known.status, known.status, "the status in a replay");
}
