import type { Books, Breach, RailBooks } from "../../../src/domain/ledger/books.ts";
import { mustEqual } from "./violation.ts";

export type LimitName = `${Breach["level"]}/${Breach["limit"]}`;

/** A limit that counts for a payment, and how much of it is used. */
export interface Used {
  readonly limit: LimitName;
  readonly limitMc: number | null;
  readonly usedMc: number;
}

/** An answer of ours that no report shows yet. */
interface Granted {
  readonly authorization: string;
  readonly position: number;
  readonly mc: number;
  readonly at: number;
}

const NOTHING: RailBooks = {
  authorization: "",
  requests: 0,
  authorizedMc: 0,
  capturedMc: 0,
  creditedMc: 0,
  recalledMc: 0,
  disputedMc: 0,
  isOpen: false,
};

/** Model of a payment's reports and answers, in the slowest and plainest way: the newest of all that was seen, and sums. */
export class BookedPayment {
  readonly requestedMc: number;
  /** UTC day that its amount counts on, as far as nothing was added later. */
  day: string;
  /** The newest report of each authorization that the ledger was told of. */
  readonly #seen = new Map<string, { readonly number: number; readonly report: RailBooks }>();
  readonly #clearances = new Map<string, Granted>();
  /** The part that still counts on the payment's own day, and what was added since, by the day that it was. */
  #baseMc: number;
  readonly #addedMc = new Map<string, number>();
  /** Amounts added, by the instant that they count at in windows. */
  #added: CountedPart[] = [];
  /** Instant that its amount counts at in windows, as far as nothing was added later. */
  windowAt: number;
  /** Thousandths of a cent by which its network has exceeded limits. */
  readonly breaches = new Map<LimitName, number>();

  constructor(requestedMc: number, day: string, windowAt = 0) {
    this.windowAt = windowAt;
    this.requestedMc = requestedMc;
    this.day = day;
    this.#baseMc = requestedMc;
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

  /** Its amounts, by the instants that they count at in windows. */
  get parts(): readonly CountedPart[] {
    return [[this.windowAt, Math.min(this.#baseMc, this.totalMc)], ...this.#added];
  }

  granted(granted: Granted, day: string): void {
    this.#clearances.set(`${granted.authorization}/${granted.position}`, granted);
    this.#count(day, granted.at);
  }

  get isCleared(): boolean {
    return this.#clearances.size > 0;
  }

  /** A read so late gives back what it does not show. */
  readAt(now: number): void {
    for (const [name, { at, authorization }] of this.#clearances) {
      if (now - at < 600_000) continue;
      this.#clearances.delete(name);
      const report = { ...NOTHING, authorization };
      if (!this.#seen.has(authorization)) this.#seen.set(authorization, { number: -1, report });
    }
  }

  /** Whether a report says what was not known. */
  isNews({ authorization }: RailBooks, number: number): boolean {
    return (this.#seen.get(authorization)?.number ?? -1) < number;
  }

  /** An unknown authorization without amounts holds and charges nothing. */
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

  booked(day: string, at = 0): void {
    this.#count(day, at);
  }

  /** Whether the network may still charge something. */
  get isOpen(): boolean {
    return this.#clearances.size > 0 || this.#reports.some(({ isOpen }) => isOpen);
  }

  get capturedMc(): number {
    return this.#sumOf("capturedMc");
  }

  /** Expects a breach exactly where a booking has exceeded a limit. */
  exceeded(before: readonly Used[], after: readonly Used[]): void {
    for (const [place, { limit, limitMc, usedMc }] of after.entries()) {
      const addedMc = usedMc - (before[place]?.usedMc ?? 0);
      const overMc = limitMc === null ? 0 : Math.min(addedMc, usedMc - limitMc);
      if (addedMc > 0 && overMc > 0) this.breaches.set(limit, (this.breaches.get(limit) ?? 0) + overMc);
    }
  }

  expectBreaches(books: Books | null, what: string): void {
    const told = new Map(books?.breaches.map((each) => [`${each.level}/${each.limit}`, each.overMc]));
    mustEqual(inOrder(told), inOrder(this.breaches), `the breaches of ${what}`);
  }

  #count(day: string, at: number): void {
    const recalled = Math.max(0, this.#sumOf("recalledMc") - this.#sumOf("creditedMc"));
    this.#baseMc = Math.min(this.#baseMc, this.heldMc + this.#sumOf("capturedMc") + recalled);
    let moreMc = Math.max(0, this.totalMc - this.#baseMc) - sum([...this.#addedMc.values()]);
    if (moreMc > 0) this.#addedMc.set(day, (this.#addedMc.get(day) ?? 0) + moreMc);
    if (moreMc > 0) this.#added.push([at, moreMc]);
    for (let backMc = -moreMc; backMc > 0;) {
      const newest = this.#added.pop();
      if (newest === undefined) break;
      if (newest[1] > backMc) this.#added.push([newest[0], newest[1] - backMc]);
      backMc -= newest[1];
    }
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

/** An amount, and the instant that it counts at. */
export type CountedPart = readonly [at: number, mc: number];

export const countedSince = (parts: Iterable<readonly CountedPart[]>, since: number): number => {
  let total = 0;
  for (const each of parts) for (const [at, mc] of each) if (at >= since) total += mc;
  return total;
};

export const sum = (amounts: readonly number[]): number => amounts.reduce((total, each) => total + each, 0);

const inOrder = (limits: ReadonlyMap<string, number>): string[] =>
  [...limits].map(([limit, cents]) => `${limit}: ${cents}`).toSorted();
