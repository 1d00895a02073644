import type { Breach, RailBooks } from "../../../../src/domain/ledger/books.ts";
import type { BudgetPolicy } from "../../../../src/domain/ledger/policy.ts";

/** What a payment's reports and answers must come to, in the slowest and plainest way: the newest of all that was seen, and sums. */
export class BookedPayment {
  readonly id: string;
  readonly agentId: string;
  readonly teamId: string;
  readonly requestedMc: number;
  readonly day: string;
  /** The newest report of each authorization that the ledger was told of. */
  readonly #seen = new Map<string, { readonly number: number; readonly report: RailBooks }>();
  readonly #clearances = new Map<string, { authorization: string; position: number; mc: number }>();
  /** The part that still counts on the payment's own day, and what was added since, by the day that it was. */
  #baseMc: number;
  readonly #addedMc = new Map<string, number>();
  readonly breaches = new Map<string, number>();

  constructor(payment: Pick<BookedPayment, "agentId" | "day" | "id" | "requestedMc" | "teamId">) {
    this.id = payment.id;
    this.agentId = payment.agentId;
    this.teamId = payment.teamId;
    this.requestedMc = payment.requestedMc;
    this.day = payment.day;
    this.#baseMc = payment.requestedMc;
  }

  get isBooked(): boolean {
    return this.#seen.size + this.#clearances.size > 0;
  }

  get heldMc(): number {
    if (!this.isBooked) return this.requestedMc;
    const ofOpen = this.#reports.filter(({ isOpen }) => isOpen);
    const uncaptured = ofOpen.map(({ authorizedMc, capturedMc }) => Math.max(0, authorizedMc - capturedMc));
    return sum(uncaptured) + sum([...this.#clearances.values()].map(({ mc }) => mc));
  }

  get spentMc(): number {
    return Math.max(0, this.#sumOf("capturedMc") - this.#sumOf("creditedMc") + this.#sumOf("recalledMc"));
  }

  get totalMc(): number {
    return this.heldMc + this.spentMc;
  }

  countedOn(day: string): number {
    const own = this.day === day ? Math.min(this.#baseMc, this.totalMc) : 0;
    return own + (this.#addedMc.get(day) ?? 0);
  }

  granted(authorization: string, position: number, mc: number, day: string): void {
    this.#clearances.set(`${authorization}/${position}`, { authorization, position, mc });
    this.#count(day);
  }

  /** What says nothing of an authorization that is not known holds and charges nothing. */
  told(report: RailBooks, number: number): void {
    const { authorization } = report;
    const known = this.#seen.get(authorization);
    const isAnswered = [...this.#clearances.values()].some((each) => each.authorization === authorization);
    const { authorizedMc, capturedMc, creditedMc, disputedMc, recalledMc } = report;
    const saysMc = authorizedMc + capturedMc + creditedMc + disputedMc + recalledMc;
    if (known === undefined && !isAnswered && saysMc === 0) return;
    if (known === undefined || known.number < number) this.#seen.set(authorization, { number, report });
    for (const [name, clearance] of this.#clearances)
      if (clearance.authorization === authorization && clearance.position < report.requests)
        this.#clearances.delete(name);
  }

  booked(day: string): void {
    this.#count(day);
  }

  #count(day: string): void {
    const recalled = Math.max(0, this.#sumOf("recalledMc") - this.#sumOf("creditedMc"));
    this.#baseMc = Math.min(this.#baseMc, this.heldMc + this.#sumOf("capturedMc") + recalled);
    let moreMc = Math.max(0, this.totalMc - this.#baseMc) - sum([...this.#addedMc.values()]);
    if (moreMc > 0) this.#addedMc.set(day, (this.#addedMc.get(day) ?? 0) + moreMc);
    for (const [newest, mc] of [...this.#addedMc].toReversed()) {
      const backMc = Math.min(mc, Math.max(0, -moreMc));
      this.#addedMc.set(newest, mc - backMc);
      moreMc += backMc;
    }
  }

  get #reports(): readonly RailBooks[] {
    return [...this.#seen.values()].map(({ report }) => report);
  }

  #sumOf(field: "capturedMc" | "creditedMc" | "recalledMc"): number {
    return sum(this.#reports.map((report) => report[field]));
  }
}

const sum = (amounts: readonly number[]): number => amounts.reduce((total, each) => total + each, 0);

export type LimitName = `${Breach["level"]}/${Breach["limit"]}`;

/** A limit that counts for a payment, and how much of it is used. */
export interface Used {
  readonly limit: LimitName;
  readonly limitMc: number | null;
  readonly usedMc: number;
}

/** All payments of a project, and its limits. */
export class BooksModel {
  readonly payments = new Map<string, BookedPayment>();
  readonly policies = new Map<string, BudgetPolicy>();
  readonly caps: { readonly project: number | null; readonly team: number | null };

  constructor(caps: { readonly project: number | null; readonly team: number | null }) {
    this.caps = caps;
  }

  of(place: { readonly agentId?: string; readonly teamId?: string }): BookedPayment[] {
    const { agentId, teamId } = place;
    return [...this.payments.values()].filter(
      (each) => (agentId ?? each.agentId) === each.agentId && (teamId ?? each.teamId) === each.teamId,
    );
  }

  totals(payments: readonly BookedPayment[]): { readonly spentMc: number; readonly reservedMc: number } {
    return {
      spentMc: sum(payments.map(({ spentMc }) => spentMc)),
      reservedMc: sum(payments.map(({ heldMc }) => heldMc)),
    };
  }

  countedOn(agentId: string, day: string): number {
    return sum(this.of({ agentId }).map((each) => each.countedOn(day)));
  }

  /** What is used of every limit that counts for a payment; `day`: today. */
  used({ agentId, id, teamId }: { agentId: string; id: string | null; teamId: string }, day: string): Used[] {
    const policy = this.policies.get(agentId);
    if (policy === undefined) throw new Error(`no policy of ${agentId}`);
    const usedIn = (payments: readonly BookedPayment[]): number =>
      sum(payments.map(({ totalMc }) => totalMc));
    const mcOrNull = (cents: number | null): number | null => (cents === null ? null : cents * 1_000);
    const own = this.payments.get(id ?? "")?.totalMc ?? 0;
    const limits: readonly (readonly [LimitName, number | null, number])[] = [
      ["agent/per_transaction", policy.perTransactionLimitCents, own],
      ["agent/budget", policy.budgetCents, usedIn(this.of({ agentId }))],
      ["agent/daily_spend", policy.dailySpendLimitCents, this.countedOn(agentId, day)],
      ["team/cap", this.caps.team, usedIn(this.of({ teamId }))],
      ["project/cap", this.caps.project, usedIn([...this.payments.values()])],
    ];
    return limits.map(([limit, cents, usedMc]) => ({ limit, limitMc: mcOrNull(cents), usedMc }));
  }
}
