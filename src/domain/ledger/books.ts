import { usedCents } from "../money.ts";
import { PERIODS } from "./calendar.ts";

/**
 * Books of a payment: what its network has done with it. Networks authorize, increase, capture in part, in excess and
 * repeatedly, release, refund, and reverse refunds. Their reports arrive late, repeatedly and in any order.
 */

/** One authorization as reported by the network. Gross amounts only rise. */
export interface RailBooks {
  /** Network's id of the authorization; "" if it has none. */
  readonly authorization: string;
  /** Number of requests that the network has counted: the authorization and its increments. */
  readonly requests: number;
  /** Granted amount that was not released. */
  readonly authorizedMc: number;
  readonly capturedMc: number;
  /** Refunds, and credits of disputes. */
  readonly creditedMc: number;
  /** Reversed refunds, and credits that were taken back. */
  readonly recalledMc: number;
  readonly disputedMc: number;
  /** Whether more captures may follow. */
  readonly isOpen: boolean;
}

/** Changes that a network makes, as named in entries. */
export const NETWORK_ENTRIES = [
  "authorized",
  "captured",
  "released",
  "refunded",
  "refund_reversed",
  "disputed",
  "dispute_lost",
] as const;
export type NetworkEntry = (typeof NETWORK_ENTRIES)[number];

/** Reasons for disputing a charge, in terms that networks share. */
export const DISPUTE_REASONS = [
  "fraudulent",
  "not_received",
  "not_as_described",
  "duplicate",
  "canceled",
  "other",
] as const;
export type DisputeReason = (typeof DISPUTE_REASONS)[number];

/** A granted authorization that no report shows yet. */
export interface Clearance {
  readonly authorization: string;
  /** Number of the request within its authorization, from 0. */
  readonly position: number;
  readonly mc: number;
  /** Time of the service's answer, in epoch milliseconds. */
  readonly at: number;
}

/** Age at which a clearance that no read shows is released: the service's answer did not arrive. */
const CLEARANCE_MS = 600_000;

/** First answer to a network's request; repeated requests get the same. */
export interface NetworkAnswer {
  readonly authorization: string;
  readonly position: number;
  /** Null if granted. */
  readonly refusal: AuthorizationRefusal | null;
  /** Requested amount. */
  readonly mc: number;
  /** Merchant, as named by the network. */
  readonly merchant: string;
  readonly at: number;
}

export type AuthorizationRefusal =
  "ABOVE_PAYMENT" | "NOT_ACTIVE" | "LIMIT_EXCEEDED" | "MERCHANT_NOT_ALLOWED" | "TOO_LATE" | "CLOSED";

/** Totals of a payment's books after a report changed them. */
export interface Booking {
  /** Epoch milliseconds. Amounts beyond the payment's own count in the windows of this instant. */
  readonly at: number;
  /** UTC date on which amounts beyond the payment's own are counted. */
  readonly day: string;
  readonly heldMc: number;
  readonly capturedMc: number;
  readonly creditedMc: number;
  readonly recalledMc: number;
  readonly disputedMc: number;
  /** All breaches so far; only if this booking added to them. */
  readonly breaches?: readonly Breach[];
}

export const BREACH_LEVELS = ["agent", "team", "project"] as const;
export const BREACH_LIMITS = ["per_transaction", "budget", "daily_spend", "cap", ...PERIODS] as const;

/** A limit that the network has exceeded, and by how much. */
export interface Breach {
  readonly level: (typeof BREACH_LEVELS)[number];
  readonly limit: (typeof BREACH_LIMITS)[number];
  readonly overMc: number;
}

/** A breach as shown, rounded up to whole cents. */
export type ShownBreach = Pick<Breach, "level" | "limit"> & { readonly overCents: number };

export const shownBreach = ({ level, limit, overMc }: Breach): ShownBreach => ({
  level,
  limit,
  overCents: usedCents(overMc),
});

export interface Books {
  readonly authorizations: readonly RailBooks[];
  readonly clearances: readonly Clearance[];
  readonly answers: readonly NetworkAnswer[];
  readonly bookings: readonly Booking[];
  readonly breaches: readonly Breach[];
}

export const NO_BOOKS: Books = {
  authorizations: [],
  clearances: [],
  answers: [],
  bookings: [],
  breaches: [],
};

/**
 * Maximum authorizations of one payment that are kept apart; a card serves only one payment. Further ones, which only a
 * network can have granted by itself, are one entry with their sums.
 */
export const AUTHORIZATIONS_MAX = 20;

/** Id of the entry for all further authorizations; no network uses it. */
const FURTHER_AUTHORIZATIONS = "further authorizations";

/** Maximum reports in one read of a payment; see `shortened`. */
export const REPORTS_MAX = 1_000;

/** Maximum requests of a network about one payment that are answered individually; further ones are refused. */
export const REQUESTS_MAX = 40;

/** Maximum bookings of one payment that are kept apart; beyond it the newest replaces the one before. */
const BOOKINGS_MAX = 40;

/** Returns the report of a network that captures a payment in full as soon as it accepts it. */
export const capturedInFull = (mc: number): RailBooks => ({
  authorization: "",
  requests: 1,
  authorizedMc: mc,
  capturedMc: mc,
  creditedMc: 0,
  recalledMc: 0,
  disputedMc: 0,
  isOpen: false,
});

/**
 * Merges two reports of one authorization. Commutative, associative and idempotent, so that order, repetition and loss
 * of reports do not matter. Takes the maximum of amounts that only rise; of the others, those of the report with more
 * requests, and the lower one if the numbers of requests are equal.
 */
export function joined(one: RailBooks, other: RailBooks): RailBooks {
  const [older, newer] = one.requests <= other.requests ? [one, other] : [other, one];
  const isEqual = one.requests === other.requests;
  return {
    authorization: one.authorization,
    requests: newer.requests,
    authorizedMc: isEqual ? Math.min(one.authorizedMc, other.authorizedMc) : newer.authorizedMc,
    isOpen: isEqual ? older.isOpen && newer.isOpen : newer.isOpen,
    capturedMc: Math.max(one.capturedMc, other.capturedMc),
    creditedMc: Math.max(one.creditedMc, other.creditedMc),
    recalledMc: Math.max(one.recalledMc, other.recalledMc),
    disputedMc: Math.max(one.disputedMc, other.disputedMc),
  };
}

const isSame = (one: RailBooks, other: RailBooks): boolean =>
  one.requests === other.requests &&
  one.authorizedMc === other.authorizedMc &&
  one.isOpen === other.isOpen &&
  one.capturedMc === other.capturedMc &&
  one.creditedMc === other.creditedMc &&
  one.recalledMc === other.recalledMc &&
  one.disputedMc === other.disputedMc;

/** Whether nothing is held or charged, as after a refused request or a card check of 0. */
export const isEmpty = ({
  authorizedMc,
  capturedMc,
  creditedMc,
  disputedMc,
  recalledMc,
}: RailBooks): boolean => authorizedMc + capturedMc + creditedMc + recalledMc + disputedMc === 0;

/**
 * Returns the books with the reports merged in, and without clearances that the reports show or that have expired; the
 * same object if nothing is new. The reports must be a read of the whole payment, so that the sums of merged
 * authorizations also only rise.
 */
export function withReports(books: Books, reports: readonly RailBooks[], now: number): Books {
  const byId = new Map(books.authorizations.map((each) => [each.authorization, each]));
  const cleared = new Set(books.clearances.map(({ authorization }) => authorization));
  let isNews = false;
  const learn = (report: RailBooks): void => {
    const known = byId.get(report.authorization);
    const joinedOne = known === undefined ? report : joined(known, report);
    isNews ||= known === undefined || !isSame(known, joinedOne);
    byId.set(report.authorization, joinedOne);
  };
  const further: RailBooks[] = [];
  for (const report of reports) {
    const isKnown = byId.has(report.authorization) || cleared.has(report.authorization);
    if (!isKnown && isEmpty(report)) continue;
    if (isKnown || new Set([...byId.keys(), ...cleared]).size < AUTHORIZATIONS_MAX - 1) learn(report);
    else further.push(report);
  }
  if (further.length > 0) learn(totalOf(further));
  const isUnseen = ({ at, authorization, position }: Clearance): boolean =>
    (byId.get(authorization)?.requests ?? 0) <= position && now - at < CLEARANCE_MS;
  const clearances = books.clearances.filter(isUnseen);
  if (!isNews && clearances.length === books.clearances.length) return books;
  // A granted amount has left the payment's hold, whether or not the network knows.
  for (const { authorization } of books.clearances)
    if (!byId.has(authorization) && !clearances.some((each) => each.authorization === authorization))
      byId.set(authorization, { ...capturedInFull(0), authorization, requests: 0 });
  return { ...books, authorizations: [...byId.values()], clearances };
}

/** Merges several authorizations. */
const totalOf = (reports: readonly RailBooks[]): RailBooks => ({
  authorization: FURTHER_AUTHORIZATIONS,
  requests: sum(reports, ({ requests }) => requests),
  // Captures of a closed authorization reduce none of the open ones.
  authorizedMc: sum(reports, ({ authorizedMc, capturedMc, isOpen }) =>
    isOpen ? Math.max(authorizedMc, capturedMc) : capturedMc,
  ),
  capturedMc: sum(reports, ({ capturedMc }) => capturedMc),
  creditedMc: sum(reports, ({ creditedMc }) => creditedMc),
  recalledMc: sum(reports, ({ recalledMc }) => recalledMc),
  disputedMc: sum(reports, ({ disputedMc }) => disputedMc),
  isOpen: reports.some(({ isOpen }) => isOpen),
});

/**
 * Returns the reports of one read, of which a command takes `REPORTS_MAX`: a merchant can try a card any number of
 * times. Beyond that, authorizations have no history, and the last empty ones are left out.
 */
export function shortened(reports: readonly RailBooks[]): readonly RailBooks[] {
  if (reports.length <= REPORTS_MAX) return reports;
  const newest = [...new Map(reports.map((report) => [report.authorization, report])).values()];
  const excess = Math.max(0, newest.length - REPORTS_MAX);
  const leftOut = new Set(newest.filter(isEmpty).toReversed().slice(0, excess));
  return newest.filter((report) => !leftOut.has(report));
}

/** Splits the reports of one read, which may contain an authorization's history, into successive reads. */
export function roundsOf(reports: readonly RailBooks[]): readonly (readonly RailBooks[])[] {
  if (reports.length === 1) return [reports];
  const histories = new Map<string, RailBooks[]>();
  for (const report of reports) {
    const history = histories.get(report.authorization);
    if (history === undefined) histories.set(report.authorization, [report]);
    else history.push(report);
  }
  const rounds = Math.max(1, ...[...histories.values()].map(({ length }) => length));
  return Array.from({ length: rounds }, (_, round) =>
    [...histories.values()].flatMap((history) => history[Math.min(round, history.length - 1)] ?? []),
  );
}

/** Held and spent amounts of a payment, in thousandths of a cent. */
export interface Money {
  readonly heldMc: number;
  readonly spentMc: number;
}

export const NO_MONEY: Money = { heldMc: 0, spentMc: 0 };

const sum = <T>(items: readonly T[], mcIn: (item: T) => number): number =>
  items.reduce((total, item) => total + mcIn(item), 0);

/** Whether the network has reported anything or was answered, so that the books alone tell where the money is. */
export const isBooked = ({ authorizations, clearances }: Books): boolean =>
  authorizations.length > 0 || clearances.length > 0;

export const capturedIn = ({ authorizations }: Books): number =>
  sum(authorizations, ({ capturedMc }) => capturedMc);

/** Returns held money (granted, still capturable) and spent money (captured minus given back, at least 0). */
export function moneyIn({ authorizations, clearances }: Pick<Books, "authorizations" | "clearances">): Money {
  const uncaptured = sum(authorizations, ({ authorizedMc, capturedMc, isOpen }) =>
    isOpen ? Math.max(0, authorizedMc - capturedMc) : 0,
  );
  const net = sum(
    authorizations,
    ({ capturedMc, creditedMc, recalledMc }) => capturedMc - creditedMc + recalledMc,
  );
  return { heldMc: uncaptured + sum(clearances, ({ mc }) => mc), spentMc: Math.max(0, net) };
}

/** Returns the books with a booking of their present totals, if those have changed. */
export function booked(books: Books, at: number, day: string): Books {
  const { authorizations, bookings } = books;
  const booking: Booking = {
    at,
    day,
    heldMc: moneyIn(books).heldMc,
    capturedMc: capturedIn(books),
    creditedMc: sum(authorizations, ({ creditedMc }) => creditedMc),
    recalledMc: sum(authorizations, ({ recalledMc }) => recalledMc),
    disputedMc: sum(authorizations, ({ disputedMc }) => disputedMc),
  };
  const last = bookings.at(-1);
  if (last !== undefined && isSameBooking(last, booking)) return books;
  if (bookings.length < BOOKINGS_MAX) return { ...books, bookings: [...bookings, booking] };
  const { breaches } = last ?? {};
  const replacing = breaches === undefined ? booking : { ...booking, breaches };
  return { ...books, bookings: [...bookings.slice(0, -1), replacing] };
}

const isSameBooking = (one: Booking, other: Booking): boolean =>
  one.heldMc === other.heldMc &&
  one.capturedMc === other.capturedMc &&
  one.creditedMc === other.creditedMc &&
  one.recalledMc === other.recalledMc &&
  one.disputedMc === other.disputedMc;

/** Returns the net amount of a booking: captured minus given back. */
export const spentIn = ({ capturedMc, creditedMc, recalledMc }: Booking): number =>
  Math.max(0, capturedMc - creditedMc + recalledMc);

/** Parts of a payment's amount, by the time at which they count. */
export interface Counted {
  /** Amount that counts with the payment itself: at most the minimum ever left of its hold. */
  readonly ownMc: number;
  /** Amounts granted or forced after that hold was given back, oldest first. */
  readonly added: readonly AddedAmount[];
}

interface AddedAmount {
  readonly at: number;
  readonly day: string;
  readonly mc: number;
}

/** Splits the amount of a payment by time. Amounts given back reduce the newest first. */
export function countedIn({ bookings }: Books, requestedMc: number): Counted {
  let [least, total, addedMc] = [requestedMc, requestedMc, 0];
  const added: AddedAmount[] = [];
  for (const booking of bookings) {
    const { at, capturedMc, creditedMc, day, heldMc, recalledMc } = booking;
    // A refund gives back nothing of the hold: if the refund is reversed, the amount counts where it did before.
    least = Math.min(least, heldMc + capturedMc + Math.max(0, recalledMc - creditedMc));
    total = heldMc + spentIn(booking);
    const now = Math.max(0, total - least);
    if (now > addedMc) added.push({ at, day, mc: now - addedMc });
    for (let left = addedMc - now; left > 0;) {
      const newest = added.pop();
      if (newest === undefined) break;
      if (newest.mc > left) added.push({ ...newest, mc: newest.mc - left });
      left -= newest.mc;
    }
    addedMc = now;
  }
  return { ownMc: Math.min(least, total), added };
}

/** Adds the breaches of the last booking to the earlier ones, by level and limit. */
export function withBreaches(books: Books, found: readonly Breach[]): Books {
  if (found.length === 0) return books;
  const breaches = [...books.breaches];
  for (const breach of found) {
    const at = breaches.findIndex(({ level, limit }) => level === breach.level && limit === breach.limit);
    const known = breaches[at];
    if (known === undefined) breaches.push(breach);
    else breaches[at] = { ...known, overMc: known.overMc + breach.overMc };
  }
  const bookings = books.bookings.map((booking, at) =>
    at === books.bookings.length - 1 ? { ...booking, breaches } : booking,
  );
  return { ...books, bookings, breaches };
}

/** Progress of a payment on its network. */
export const STAGES = ["armed", "authorized", "captured", "released"] as const;
export type Stage = (typeof STAGES)[number];
