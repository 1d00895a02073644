import type {
  AgentCommand,
  AgentReply,
  CapsHeard,
  PaymentDecision,
} from "../../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome } from "../../../src/domain/agent/payment.ts";
import { type AgentBook, type BookedPayment, dayOf, isHeld, type Verdict } from "./agent-book.ts";
import { STATUS_BY_RAIL } from "./at-rest.ts";
import { expectDenial, type Ledger } from "./ledger.ts";
import { expectKind, LifeAudit } from "./life-audit.ts";
import { must, mustEqual } from "./violation.ts";

type Of<T extends { kind: string }, K extends T["kind"]> = Extract<T, { kind: K }>;
type Resolution = Of<AgentCommand, "approve" | "deny" | "cancel" | "expire">;

/** How long leave to send may be made use of: a second, and as much as clocks differ. */
const LEAVE_MS = 1_250;

/** What agents must answer, by the books, which follow the answers. */
export class AgentAudit {
  readonly #ledger: Ledger;
  readonly #life: LifeAudit;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    this.#life = new LifeAudit(ledger);
  }

  expect(book: AgentBook, command: AgentCommand, reply: AgentReply, now: number): void {
    switch (command.kind) {
      case "pay":
        return this.#expectPay(book, command, reply, now);
      case "confirm":
        return this.#expectConfirm(book, command, reply, now);
      case "approve":
      case "deny":
      case "cancel":
      case "expire":
        return this.#expectResolution(book, command, reply, now);
      case "ask_to_send":
        return this.#expectLeave(book, command.transactionId, reply, now);
      case "read_payment":
        return this.#expectRead(command.transactionId, reply);
      case "change_policy":
        return this.#expectPolicy(book, command, reply);
      case "heed_budget":
        return this.#expectHeed(book, command, reply);
      case "read_report":
        return expectKind(reply, "report", command);
      case "confirm_report":
      case "confirm_summary":
      case "confirm_limits":
        return expectKind(reply, "confirmed", command);
      default:
        return this.#life.expect(book, command, reply, now);
    }
  }

  #expectPay(book: AgentBook, command: Of<AgentCommand, "pay">, reply: AgentReply, now: number): void {
    const { request } = command;
    const known = book.byKey.get(request.keyHash);
    if (known !== undefined) {
      this.#ledger.count("replayed");
      return expectReplay(known, request.payloadHash, reply);
    }
    if (book.lifecycle === "archived")
      return mustEqual(reply.kind, "archived", "an archived agent's payment");
    if (!book.keys.mayBe(command.keyId)) {
      this.#ledger.count("payment by a dead key");
      return mustEqual(reply.kind, "dead_key", "a dead key's payment");
    }
    must(reply.kind === "decided", `a new key was answered ${reply.kind}`);
    const verdict = book.verdict(request.amountCents, now);
    const isAsked = reply.decision.ask !== undefined;
    const payment = decidedNow(book, command, verdict, isAsked, now);
    this.#expectDecision(book, payment, verdict, reply.decision);
    must(!this.#ledger.payments.has(payment.id), `${payment.id} was decided twice`);
    this.#ledger.payments.set(payment.id, payment);
    book.add(payment, request.keyHash);
    if (verdict === null && !payment.needsPerson) book.leaveUntil = now + LEAVE_MS;
    must(verdict !== null || book.usedCents <= book.policy.budgetCents, "accepted over the budget");
    const accepted = payment.needsPerson ? "held" : isAsked ? "asked" : "unasked";
    this.#ledger.count(verdict?.code ?? accepted);
  }

  #expectDecision(
    book: AgentBook,
    payment: BookedPayment,
    verdict: Verdict | null,
    { approval, createdAt, day, denial, sequence }: PaymentDecision,
  ): void {
    const { agentId, teamId } = book;
    const { amountCents, expiresAt, isUnderCaps, needsPerson } = payment;
    expectDenial(denial, verdict, `a payment of ${amountCents} by ${agentId}`);
    mustEqual(approval !== null, needsPerson, "whether a person is asked");
    if (approval !== null) mustEqual(approval.expiresAt, expiresAt, "the end of the window");
    mustEqual([createdAt, day], [payment.createdAt, payment.day], "when it was decided");
    mustEqual(sequence, book.payments.length + 1, "the sequence");
    if (isUnderCaps) this.#ledger.caps.mustFit(teamId, amountCents, 0, `${agentId} did not ask`);
  }

  #expectConfirm(
    book: AgentBook,
    command: Of<AgentCommand, "confirm">,
    reply: AgentReply,
    now: number,
  ): void {
    const payment = this.#ledger.payment(command.transactionId);
    const isEnded = !payment.isOver && this.#hear(book, payment, command, now);
    mustEqual(reply.kind, isEnded ? "payment" : "confirmed", "the answer to a confirmation");
    if (payment.isOver) payment.isConfirmed = true;
  }

  /** The agent hears what the budget said, and then what the rail said. Answers whether archiving has ended it. */
  #hear(
    book: AgentBook,
    payment: BookedPayment,
    { caps, outcome }: Of<AgentCommand, "confirm">,
    now: number,
  ): boolean {
    const isEnded =
      caps !== undefined && payment.ask === caps.kind && this.#hearCaps(book, payment, caps, now);
    // What the rail speaks of was sent, so the budget had taken it.
    if (outcome !== null && payment.ask !== null && !isHeld(payment))
      this.#ledger.change(book, payment, { ask: null });
    const isSent = payment.ask === null && !isHeld(payment) && !payment.isOver;
    if (outcome !== null && isSent) this.#settle(book, payment, outcome.result);
    return isEnded;
  }

  #hearCaps(book: AgentBook, payment: BookedPayment, { answer, kind }: CapsHeard, now: number): boolean {
    const said = kind === "reserve" ? payment.reserveAnswer : payment.recheckAnswer;
    mustEqual(answer.granted, said?.granted, `what the budget said to ${payment.id}`);
    if (answer.granted) return this.#granted(book, payment, now);
    const over = { ask: null, isOver: true };
    if (kind === "recheck") {
      this.#ledger.count("failed by a cap");
      this.#ledger.change(book, payment, { ...over, status: "failed" });
    } else {
      this.#ledger.count(answer.denial.code);
      this.#ledger.change(book, payment, { ...over, status: "denied", isCounted: false });
    }
    return false;
  }

  /** An archived agent has nothing on hold. */
  #granted(book: AgentBook, payment: BookedPayment, now: number): boolean {
    const isEnded = book.lifecycle === "archived" && isHeld(payment);
    const status = now >= payment.expiresAt ? "expired" : "denied";
    this.#ledger.change(book, payment, isEnded ? { ask: null, status, isOver: true } : { ask: null });
    return isEnded;
  }

  #settle(book: AgentBook, payment: BookedPayment, outcome: RailOutcome): void {
    if (outcome.status === "pending") return;
    const isRefused = outcome.status === "failed" || outcome.status === "withheld";
    if (isRefused && payment.status !== "pending") return;
    const status = STATUS_BY_RAIL[outcome.status];
    if (outcome.status === "withheld") this.#ledger.count("withheld");
    if (status !== payment.status) this.#ledger.count(status);
    this.#ledger.change(book, payment, { status, isOver: outcome.status !== "settled" || outcome.final });
  }

  /** Nothing is sent of a paused agent, and what was withdrawn never is. */
  #expectLeave(book: AgentBook, transactionId: string, reply: AgentReply, now: number): void {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    const payment = this.#ledger.payment(transactionId);
    if (!book.onTheirWay().includes(payment))
      return mustEqual(reply.kind, "payment", `leave to send ${transactionId}`);
    const leave = payment.isWithdrawn ? "withdraw" : book.lifecycle === "paused" ? "wait" : "send";
    mustEqual(reply, { kind: "leave", leave }, `leave to send ${transactionId}`);
    this.#ledger.count(`leave: ${leave}`);
    if (leave === "send") book.leaveUntil = now + LEAVE_MS;
  }

  #expectRead(transactionId: string, reply: AgentReply): void {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    must(reply.kind === "payment" && !reply.changed, `a read was answered ${reply.kind}`);
    mustEqual(
      reply.payment.status,
      this.#ledger.payment(transactionId).status,
      `the status of ${transactionId}`,
    );
  }

  /** What was decided stays until it is over, and somebody has said that all is done for it. */
  #expectClosed(transactionId: string): void {
    const payment = this.#ledger.payments.get(transactionId);
    const isClosed = payment === undefined || (payment.isOver && payment.isConfirmed);
    must(isClosed, `${transactionId} is not over, and not open`);
  }

  #expectResolution(book: AgentBook, command: Resolution, reply: AgentReply, now: number): void {
    if (reply.kind === "not_open") return this.#expectClosed(command.transactionId);
    const payment = this.#ledger.payment(command.transactionId);
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
    if (held) expectResolved(reply.payment, command, inTime);
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
    const before = book.policy;
    book.policy = { ...before, ...command.patch };
    book.version += 1;
    if (command.patch.budgetCents !== undefined) book.budgetByTeam = null;
    this.#ledger.count("policy changed");
    must(reply.kind === "policy", `a new policy was answered ${reply.kind}`);
    mustEqual(reply.policyVersion, book.version, "the version of a new policy");
    mustEqual(reply.policy, book.policy, "a new policy");
    mustEqual(reply.before, before, "the policy before a new one");
  }

  /** Of one replacement an agent hears once: what is told again does not undo what a person has changed since. */
  #expectHeed(book: AgentBook, command: Of<AgentCommand, "heed_budget">, reply: AgentReply): void {
    expectKind(reply, "report", command);
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

/** A payment as the book has it once it is decided; what was not asked about counts under the caps at once. */
function decidedNow(
  book: AgentBook,
  { approvalWindowSeconds, request }: Of<AgentCommand, "pay">,
  verdict: Verdict | null,
  isAsked: boolean,
  now: number,
): BookedPayment {
  const { amountCents, payloadHash, transactionId } = request;
  const isAccepted = verdict === null;
  return {
    id: transactionId,
    agentId: book.agentId,
    payloadHash,
    amountCents,
    createdAt: now,
    createdOn: dayOf(now),
    expiresAt: now + approvalWindowSeconds * 1_000,
    needsPerson: isAccepted && book.needsPerson(amountCents),
    isAsked,
    status: isAccepted ? "pending" : "denied",
    isOver: !isAccepted,
    isCounted: isAccepted,
    day: dayOf(now),
    approvedAt: null,
    ask: isAsked ? "reserve" : null,
    reserveAnswer: null,
    recheckAnswer: null,
    isUnderCaps: isAccepted && !isAsked,
    isWithdrawn: false,
    isCaptured: false,
    isReversed: false,
    rail: null,
    recorded: null,
    written: new Map(),
    isConfirmed: false,
    shown: "pending",
  };
}

/** What a decision on hold leaves in the approval: who decided, and what. */
function expectResolved(payment: Payment, { kind }: Resolution, inTime: boolean): void {
  const isExecuting = payment.status === "pending";
  const resolution = isExecuting ? "executing" : payment.status;
  mustEqual(payment.approval?.resolution, resolution, "the approval's resolution");
  mustEqual(payment.denial === null, isExecuting, "whether there is no denial");
  const isByPerson = inTime && (kind === "approve" || kind === "deny");
  mustEqual(payment.approval?.resolvedBy !== null, isByPerson, "whether a person resolved it");
}
