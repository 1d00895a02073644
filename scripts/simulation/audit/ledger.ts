import type { Denial } from "../../../src/domain/agent/policy.ts";
import { type AgentBook, type BookedPayment, isMoney, type Verdict } from "./agent-book.ts";
import { CapBook } from "./cap-book.ts";
import { must, mustEqual } from "./violation.ts";

/** The auditor's books: every agent's and every payment's, and what is used of the caps. */
export class Ledger {
  readonly agents = new Map<string, AgentBook>();
  readonly payments = new Map<string, BookedPayment>();
  readonly caps = new CapBook(this.agents);
  /** What has happened, how often. */
  readonly tally = new Map<string, number>();

  payment(transactionId: string): BookedPayment {
    const payment = this.payments.get(transactionId);
    must(payment !== undefined, `nobody decided ${transactionId}`);
    return payment;
  }

  change(book: AgentBook, payment: BookedPayment, change: Partial<BookedPayment>): void {
    const wasMoney = isMoney(payment.status);
    book.change(payment, change);
    if (wasMoney && !isMoney(payment.status)) this.caps.release(book.teamId, payment.amountCents);
  }

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }
}

export function expectDenial(denial: Denial | null, verdict: Verdict | null, what: string): void {
  mustEqual(denial?.code ?? null, verdict?.code ?? null, what);
  mustEqual(denial?.details ?? null, verdict?.details ?? null, `${what}, the details`);
}
