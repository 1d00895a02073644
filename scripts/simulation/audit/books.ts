import type { Denial, LimitDenial } from "../../../src/domain/ledger/policy.ts";
import { type AgentBook, type BookedPayment, isClosed, isMoney, type Verdict } from "./agent-book.ts";
import type { LifeBook } from "./life-book.ts";
import { must, mustEqual } from "./violation.ts";

/** A project or a team: its cap, and the rules that judge payments under it. */
export interface LevelBook {
  capCents: number | null;
  version: number;
  rulesVersion: number;
  spentCents: number;
  reservedCents: number;
}

const newLevel = (): LevelBook => ({
  capCents: null,
  version: 1,
  rulesVersion: 0,
  spentCents: 0,
  reservedCents: 0,
});

/** The auditor's books: every account's, every agent's life, every payment's, and what is used of the caps. */
export class AuditBooks {
  readonly accounts = new Map<string, AgentBook>();
  readonly lives = new Map<string, LifeBook>();
  readonly payments = new Map<string, BookedPayment>();
  readonly #levels = new Map<string | null, LevelBook>();
  readonly #open = new Set<BookedPayment>();
  /** What has happened, how often. */
  readonly tally = new Map<string, number>();

  /** The project (null), or a team. */
  level(teamId: string | null): LevelBook {
    const known = this.#levels.get(teamId) ?? newLevel();
    this.#levels.set(teamId, known);
    return known;
  }

  payment(transactionId: string): BookedPayment {
    const payment = this.payments.get(transactionId);
    must(payment !== undefined, `nobody decided ${transactionId}`);
    return payment;
  }

  account(agentId: string): AgentBook {
    const book = this.accounts.get(agentId);
    must(book !== undefined, `nobody opened an account for ${agentId}`);
    return book;
  }

  life(agentId: string): LifeBook {
    const book = this.lives.get(agentId);
    must(book !== undefined, `nobody created ${agentId}`);
    return book;
  }

  add(book: AgentBook, payment: BookedPayment): void {
    must(!this.payments.has(payment.id), `${payment.id} was decided twice`);
    this.payments.set(payment.id, payment);
    this.#open.add(payment);
    book.add(payment);
    this.#count(book, payment, 1);
  }

  change(book: AgentBook, payment: BookedPayment, change: Partial<BookedPayment>, now: number): void {
    this.#count(book, payment, -1);
    book.change(payment, change, now);
    this.#count(book, payment, 1);
  }

  #count({ teamId }: AgentBook, { amountCents, status }: BookedPayment, sign: 1 | -1): void {
    if (!isMoney(status)) return;
    const field = status === "pending" ? "reservedCents" : "spentCents";
    for (const level of [this.level(null), this.level(teamId)]) level[field] += sign * amountCents;
  }

  openCount(): number {
    for (const payment of this.#open) if (isClosed(payment)) this.#open.delete(payment);
    return this.#open.size;
  }

  /** What limits of all levels say to an amount, in the order in which they are looked at; `own` not counted. */
  verdict(
    book: AgentBook,
    amountCents: number,
    now: number,
    own: BookedPayment | null = null,
  ): Verdict | null {
    return book.verdict(amountCents, now, own) ?? this.#capVerdict(book.teamId, amountCents, own);
  }

  #capVerdict(teamId: string, amountCents: number, own: BookedPayment | null): Verdict | null {
    for (const [code, level] of [
      ["TEAM_CAP_EXCEEDED", this.level(teamId)],
      ["PROJECT_CAP_EXCEEDED", this.level(null)],
    ] as const) {
      const { capCents, reservedCents, spentCents } = level;
      const used = spentCents + reservedCents - (own?.amountCents ?? 0);
      if (capCents === null || used + amountCents <= capCents) continue;
      const remaining = capCents > used ? capCents - used : 0;
      return { code, details: { limit: capCents, remaining, resetsAt: null } };
    }
    return null;
  }

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }
}

export function expectDenial(
  denial: Denial | LimitDenial | null,
  verdict: Verdict | null,
  what: string,
): void {
  mustEqual(denial?.code ?? null, verdict?.code ?? null, what);
  mustEqual(denial?.details ?? null, verdict?.details ?? null, `${what}, the details`);
}
