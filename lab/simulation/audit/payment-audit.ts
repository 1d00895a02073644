import { capturedInFull, type RailBooks } from "../../../src/domain/ledger/books.ts";
import type { StoredPayment, RailOutcome, TransactionStatus } from "../../../src/domain/ledger/payment.ts";
import type { CommandOf, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { type AccountModel, type PaymentModel, isClosed, isHeld } from "./account-model.ts";
import type { BookedPayment } from "./booked-payment.ts";
import { type WorldModel, expectDenial } from "./books.ts";
import { must, mustEqual } from "./violation.ts";

type Resolution = CommandOf<"approve" | "deny" | "cancel" | "expire">;

/** Statuses that a rail's refusals leave. Of all else the books decide. */
const STATUS_BY_REFUSAL = { failed: "failed", withheld: "denied" } as const;

/** Returns a payment's status by its network's books. */
export function statusIn(books: BookedPayment): TransactionStatus {
  if (books.capturedMc > 0) return books.totalMc > 0 ? "approved" : "reversed";
  return books.isOpen ? "pending" : "failed";
}

/** Whether a payment has become what its rail has answered. */
export function isAsAnswered({ books, rail, status }: PaymentModel): boolean {
  if (books.isBooked) return status === statusIn(books);
  if (rail === "failed" || rail === "withheld") return status === STATUS_BY_REFUSAL[rail];
  return rail === null || rail === "pending";
}

/** The number of a report among those of its authorization: a network here asks once, and then only adds or closes. */
const numberOf = ({ capturedMc, creditedMc, disputedMc, isOpen, recalledMc }: RailBooks): number =>
  2 * (capturedMc + creditedMc + disputedMc + recalledMc) + (isOpen ? 0 : 1);

/** Expectations about a decided payment: its way over the rail, and people's decisions. */
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
    const books = this.#books;
    const end = (status: TransactionStatus): void => {
      books.count(outcome.status === "withheld" ? "withheld" : status);
      const change = (): void => void Object.assign(payment, { status, isOver: true, isFollowed: true });
      books.change(model, payment, { by: "rail", change, now });
    };
    switch (outcome.status) {
      case "pending":
      case "armed":
      case "charged":
        if (payment.isFollowed) return;
        return books.change(model, payment, {
          by: "rail",
          change: () => void (payment.isFollowed = true),
          now,
        });
      case "failed":
      case "withheld":
        if (payment.status === "pending" && !payment.books.isBooked) end(STATUS_BY_REFUSAL[outcome.status]);
        return;
      case "settled":
        if (!payment.books.isBooked)
          this.#told(model, payment, { by: "rail", reports: [capturedInFull(payment.amountMc)], now });
    }
  }

  /** Its books say all of a payment, from then on. */
  #told(
    model: AccountModel,
    payment: PaymentModel,
    told: { readonly by: "rail" | "books"; readonly reports: readonly RailBooks[]; readonly now: number },
  ): void {
    const { by, now, reports } = told;
    const { books } = payment;
    const was = payment.status;
    const change = (): void => {
      for (const report of reports) books.told(report, numberOf(report));
      books.booked(model.dayOf(now), this.#books.windowsAt(now));
      Object.assign(payment, { status: statusIn(books), isOver: !books.isOpen, isFollowed: true });
    };
    this.#books.change(model, payment, { by, change, now });
    if (was !== payment.status) this.#books.count(payment.status);
  }

  /** Accepts every act of the network. A closed payment is taken back with its newest record. */
  expectBooked(command: CommandOf<"book">, reply: LedgerReply, now: number): void {
    const payment = this.#books.payment(command.transactionId);
    const model = this.#books.account(payment.agentId);
    this.#books.count(`booked: ${reply.kind}`);
    if (reply.kind === "records_check_required" || reply.kind === "account_dropped")
      return must(isClosed(payment), `${payment.id} is open, and was answered ${reply.kind}`);
    must(reply.kind === "payment", `a report was answered ${reply.kind}`);
    const isReopened = isClosed(payment);
    must(!isReopened || command.closed !== undefined, `${payment.id} was taken back without its record`);
    if (command.dropped !== undefined && model.status === "closed" && model.open().length === 0)
      model.cameBack(command.dropped.day.date);
    const isNews = command.books.some((report) => payment.books.isNews(report, numberOf(report)));
    mustEqual(reply.changed, isNews, `whether a report changed ${payment.id}`);
    if (!isNews) return;
    if (isReopened) this.#books.count("taken back");
    const day = model.dayOf(now);
    const at = this.#books.windowsAt(now);
    const before = this.#books.used(model, payment, day, at);
    this.#told(model, payment, { by: "books", reports: command.books, now });
    const after = this.#books.used(model, payment, day, at);
    payment.books.exceeded(before, after);
    for (const limit of payment.books.breaches.keys()) this.#books.count(`breach: ${limit}`);
    payment.books.expectBreaches(reply.payment.books, payment.id);
    mustEqual(reply.payment.status, payment.status, `what a report made of ${payment.id}`);
    mustEqual(reply.payment.revision, payment.revision, `the revision of ${payment.id}`);
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
    const books = this.#books;
    const payment = books.payment(command.transactionId);
    const model = books.account(payment.agentId);
    const held = isHeld(payment);
    if (held && command.kind === "approve") {
      if (books.isOutdated(model, command.rulesVersions)) {
        books.count("approve: stale rules");
        return mustEqual(reply.kind, "stale_rules", "an approval that was judged by old restrictions");
      }
      books.expectRestricted(model, payment.recipient, command);
    }
    must(reply.kind === "payment", `${command.kind} was answered ${reply.kind}`);
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
    const end = (status: "denied" | "expired" | "failed"): void => {
      const change = (): void => void Object.assign(payment, { isOver: true, status });
      books.change(model, payment, { by: "person", change, now });
    };
    if (isLate || command.kind === "expire") return end("expired");
    if (command.kind !== "approve") return end("denied");
    const verdict = books.verdict(model, payment.amountMc, now, {
      own: payment,
      seen: shown.denial?.code ?? null,
      forbidden: command.forbidden,
    });
    expectDenial(shown.denial, verdict, `the approval of ${payment.id}`);
    if (verdict !== null) {
      books.count(`approve: ${verdict.code}`);
      return end("failed");
    }
    // Spending counts today, also for a payment put on hold yesterday.
    const day = model.dayOf(now);
    mustEqual(shown.day, day, `the day of ${payment.id}`);
    const windowAt = books.windowsAt(now);
    const change = (): void => {
      payment.approvedAt = now;
      payment.books.day = day;
      payment.books.windowAt = windowAt;
    };
    books.change(model, payment, { by: "person", change, now });
  }

  /** Checks that a decided payment stays until a process has confirmed its end. */
  #expectClosed(transactionId: string): void {
    const payment = this.#books.payments.get(transactionId);
    must(payment === undefined || isClosed(payment), `${transactionId} is not over, and not open`);
  }
}

/** Checks the approval of a payment on hold: who decided, and how. */
function expectResolved(payment: StoredPayment, { kind }: Resolution, inTime: boolean): void {
  const isExecuting = payment.status === "pending";
  const resolution = isExecuting ? "executing" : payment.status;
  mustEqual(payment.approval?.resolution, resolution, "the approval's resolution");
  mustEqual(payment.denial === null, isExecuting, "whether there is no denial");
  const isByPerson = inTime && (kind === "approve" || kind === "deny");
  mustEqual(payment.approval?.resolvedBy !== null, isByPerson, "whether a person resolved it");
}
