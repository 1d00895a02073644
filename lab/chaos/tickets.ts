import { z } from "zod";
import { type Answer, codeOf, type Service } from "./http.ts";
import { bodyOf, type Order } from "./orders.ts";

const paid = z.object({
  transaction: z.object({
    id: z.string(),
    status: z.string(),
    rail: z.string(),
    amounts: z.object({ requestedCents: z.number() }),
  }),
  approval: z.object({}).nullable(),
});

/** An order with the answers that its client got. */
export interface Ticket {
  readonly order: Order;
  /** The payment that it was answered with; null: it never was. */
  transactionId: string | null;
  /** The last status that a client saw. */
  status: string | null;
  /** Whether it was on hold when it was answered first. */
  isHeld: boolean;
  /** Its agent's key was refused for good, since the agent was archived. */
  isRefused: boolean;
  /** Requests so far; more than one where the client had to ask again, or wanted to. */
  requests: number;
}

/** The moment at which a payment was answered for the first time. */
export interface PaymentAnswer {
  readonly agentId: string;
  readonly atMs: number;
}

/** What may still become of a payment; of any other status: nothing. */
const NEXT: Readonly<Record<string, readonly string[]>> = {
  pending: ["approved", "denied", "failed", "reversed", "expired"],
  approved: ["reversed"],
};

/** All requests of the clients of a run with their answers, and what was odd about them. */
export class Tickets {
  readonly #service: Service;
  readonly #tickets: Ticket[] = [];
  readonly #oddities: string[] = [];
  #slowestMs = 0;
  #retries = 0;
  readonly #answers: PaymentAnswer[] = [];
  #answered = 0;

  constructor(service: Service) {
    this.#service = service;
  }

  get all(): readonly Ticket[] {
    return this.#tickets;
  }

  /** Answers that no disaster excuses. */
  get oddities(): readonly string[] {
    return this.#oddities;
  }

  /** Requests that had to be sent again, for want of an answer. */
  get retries(): number {
    return this.#retries;
  }

  /** Payments that have been answered. */
  get answered(): number {
    return this.#answered;
  }

  /** The longest that a client waited for an answer since this was asked last. */
  takeSlowestMs(): number {
    const slowest = this.#slowestMs;
    this.#slowestMs = 0;
    return slowest;
  }

  /** First answers since this was asked last, in their order. */
  takeAnswers(): readonly PaymentAnswer[] {
    return this.#answers.splice(0);
  }

  open(order: Order): Ticket {
    const ticket: Ticket = {
      order,
      transactionId: null,
      status: null,
      isHeld: false,
      isRefused: false,
      requests: 0,
    };
    this.#tickets.push(ticket);
    return ticket;
  }

  unanswered(): Ticket[] {
    return this.#tickets.filter(({ isRefused, transactionId }) => transactionId === null && !isRefused);
  }

  /** Purchases that may need their request again to be made. */
  unbought(): Ticket[] {
    return this.#tickets.filter(({ order, status }) => order.url !== null && status === "pending");
  }

  /** Sends it once more, under its key. */
  async send(ticket: Ticket): Promise<Answer> {
    const { order } = ticket;
    const startedAt = performance.now();
    // Of two answers that overlap, neither is the later one: only what was known before is compared.
    const { status } = ticket;
    if (ticket.requests > 0 && ticket.transactionId === null) this.#retries += 1;
    ticket.requests += 1;
    const path = order.url === null ? "/v1/payments" : "/v1/payments/x402";
    const request = { method: "POST", path, token: order.agent.apiKey } as const;
    const answer = await this.#service.ask({ ...request, body: bodyOf(order) });
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedAt);
    this.#note(ticket, answer, status);
    return answer;
  }

  #note(ticket: Ticket, answer: Answer, known: string | null): void {
    const { key, amountCents, rail } = ticket.order;
    if (answer.status === null || answer.status === 503 || answer.status === 429) return;
    if (codeOf(answer) === "AGENT_PAUSED") return;
    if (answer.status === 401 && ticket.order.agent.isBrief) {
      ticket.isRefused = ticket.transactionId === null;
      return;
    }
    const parsed = paid.safeParse(answer.body);
    if ((answer.status !== 200 && answer.status !== 201) || !parsed.success) {
      this.#oddities.push(`${key} was answered ${String(answer.status)}: ${JSON.stringify(answer.body)}`);
      return;
    }
    const { approval, transaction } = parsed.data;
    const before = ticket.transactionId;
    if (before !== null && before !== transaction.id)
      this.#oddities.push(`${key} was answered with ${before}, and later with ${transaction.id}`);
    if (transaction.amounts.requestedCents !== amountCents || transaction.rail !== rail)
      this.#oddities.push(`${key} was answered with another payment's terms: ${JSON.stringify(transaction)}`);
    const { status } = transaction;
    if (known !== null && known !== status && NEXT[known]?.includes(status) !== true)
      this.#oddities.push(`${key} was ${known}, and later ${status}`);
    if (before === null) {
      ticket.isHeld = approval !== null;
      this.#answered += 1;
      this.#answers.push({ agentId: ticket.order.agent.id, atMs: performance.now() });
    }
    ticket.transactionId = transaction.id;
    ticket.status = status;
  }
}
