import type { StoredPayment, RailOutcome } from "../../../src/domain/ledger/payment.ts";
import type { CommandOf, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { type AccountModel, type PaymentModel, isClosed, isHeld } from "./account-model.ts";
import { type WorldModel, expectDenial } from "./books.ts";
import { must, mustEqual } from "./violation.ts";

type Resolution = CommandOf<"approve" | "deny" | "cancel" | "expire">;

/** What a payment is when its rail has said so. */
export const STATUS_BY_RAIL = {
  pending: "pending",
  settled: "approved",
  final: "approved",
  failed: "failed",
  reversed: "reversed",
  withheld: "denied",
} as const;

/** What must become of a payment that is decided: its way over the rail, and what people make of it. */
export class PaymentAudit {
  readonly #books: WorldModel;

  constructor(books: WorldModel) {
    this.#books = books;
  }

  expectConfirmed(command: CommandOf<"confirm">, reply: LedgerReply, now: number): void {
    mustEqual(reply.kind, "confirmed", "the answer to a confirmation");
    const payment = this.#books.payment(command.transactionId);
    if (isClosed(payment)) return;
    const model = this.#books.account(payment.agentId);
    if (command.outcome !== null && !payment.isOver && !isHeld(payment))
      this.#settle(model, payment, command.outcome.result, now);
    const confirmed = Math.min(command.revision, payment.revision);
    payment.confirmedRevision = Math.max(payment.confirmedRevision, confirmed);
  }

  #settle(model: AccountModel, payment: PaymentModel, outcome: RailOutcome, now: number): void {
    if (outcome.status === "pending") {
      if (!payment.isFollowed) this.#books.change(model, payment, { isFollowed: true }, now);
      return;
    }
    const isRefused = outcome.status === "failed" || outcome.status === "withheld";
    if (isRefused && payment.status !== "pending") return;
    const status = STATUS_BY_RAIL[outcome.status];
    const isOver = outcome.status !== "settled" || outcome.final;
    if (status === payment.status && isOver === payment.isOver) return;
    if (outcome.status === "withheld") this.#books.count("withheld");
    if (status !== payment.status) this.#books.count(status);
    this.#books.change(model, payment, { status, isOver, isFollowed: true }, now);
  }

  /** Nothing is sent of a paused agent, and what was withdrawn never is. */
  expectPermission({ agentId, transactionId }: CommandOf<"request_permission">, reply: LedgerReply): void {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    const payment = this.#books.payment(transactionId);
    const model = this.#books.account(agentId);
    if (!model.inFlight().includes(payment))
      return mustEqual(reply.kind, "payment", `permission to send ${transactionId}`);
    must(reply.kind === "permission", `a request for permission was answered ${reply.kind}`);
    const { permission } = reply;
    const kind = payment.isWithdrawn ? "withdraw" : model.status === "paused" ? "wait" : "send";
    mustEqual(permission.kind, kind, `permission to send ${transactionId}`);
    this.#books.count(`permission: ${kind}`);
    if (permission.kind === "send") model.permitted(permission.permit);
    if (permission.kind === "wait") model.fenced(permission.fence);
  }

  expectRead(transactionId: string, reply: LedgerReply): void {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    must(reply.kind === "payment" && !reply.changed, `a read was answered ${reply.kind}`);
    const { status } = this.#books.payment(transactionId);
    mustEqual(reply.payment.status, status, `the status of ${transactionId}`);
  }

  expectResolution(command: Resolution, reply: LedgerReply, now: number): void {
    if (reply.kind === "not_open") return this.#expectClosed(command.transactionId);
    const payment = this.#books.payment(command.transactionId);
    const model = this.#books.account(payment.agentId);
    must(reply.kind === "payment", `${command.kind} was answered ${reply.kind}`);
    const held = isHeld(payment);
    const inTime = held && now < payment.expiresAt;
    if (held) this.#resolve(model, payment, command, reply.payment, now);
    mustEqual(reply.changed, inTime, `whether ${command.kind} changed ${payment.id}`);
    mustEqual(reply.payment.status, payment.status, `what ${command.kind} made of ${payment.id}`);
    if (held) expectResolved(reply.payment, command, inTime);
  }

  #resolve(
    model: AccountModel,
    payment: PaymentModel,
    command: Resolution,
    shown: StoredPayment,
    now: number,
  ): void {
    const books = this.#books;
    const isLate = now >= payment.expiresAt;
    books.count(isLate ? `${command.kind} too late` : command.kind);
    const end = (status: "denied" | "expired" | "failed"): void =>
      books.change(model, payment, { isOver: true, status }, now);
    if (isLate || command.kind === "expire") return end("expired");
    if (command.kind !== "approve") return end("denied");
    const verdict = books.verdict(model, payment.amountCents, now, {
      own: payment,
      seen: shown.denial?.code ?? null,
    });
    expectDenial(shown.denial, verdict, `the approval of ${payment.id}`);
    if (verdict !== null) {
      books.count(`approve: ${verdict.code}`);
      return end("failed");
    }
    // What is spent today counts today, also when it was put on hold yesterday.
    const day = model.dayOf(now);
    mustEqual(shown.day, day, `the day of ${payment.id}`);
    if (day !== payment.day) model.counted(now);
    books.change(model, payment, { approvedAt: now, day }, now);
  }

  /** What was decided stays until it is over, and a process has confirmed that all is done for it. */
  #expectClosed(transactionId: string): void {
    const payment = this.#books.payments.get(transactionId);
    must(payment === undefined || isClosed(payment), `${transactionId} is not over, and not open`);
  }
}

/** What a decision on hold leaves in the approval: who decided, and what. */
function expectResolved(payment: StoredPayment, { kind }: Resolution, inTime: boolean): void {
  const isExecuting = payment.status === "pending";
  const resolution = isExecuting ? "executing" : payment.status;
  mustEqual(payment.approval?.resolution, resolution, "the approval's resolution");
  mustEqual(payment.denial === null, isExecuting, "whether there is no denial");
  const isByPerson = inTime && (kind === "approve" || kind === "deny");
  mustEqual(payment.approval?.resolvedBy !== null, isByPerson, "whether a person resolved it");
}
