import { usedCents } from "../money.ts";
import { PERIODS } from "./calendar.ts";

/**
 * The books of a payment: what its network has done with it. Networks authorize, raise, capture in part, over and several times,
 * release, refund, and take refunds back; reports of that come late, twice and in any order.
 */

/** One authorization as the network reports it. Gross amounts only rise. */
export interface RailBooks {
  /** The network's id of the authorization; "" where it has none. */
  readonly authorization: string;
  /** Number of requests that the network has counted: the authorization and its increments. */
  readonly requests: number;
  /** Granted, and not given back. */
  readonly authorizedMc: number;
  readonly capturedMc: number;
  /** Refunds, and credits of disputes. */
  readonly creditedMc: number;
  /** Refunds that were reversed, and credits that were taken back. */
  readonly recalledMc: number;
  readonly disputedMc: number;
  /** Whether more captures may come. */
  readonly isOpen: boolean;
}

/** What a network does with a payment, as its entries name it. */
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

/** Why a charge is disputed, in words that networks have in common. */
export const DISPUTE_REASONS = [
  "fraudulent",
  "not_received",
  "not_as_described",
  "duplicate",
  "canceled",
  "other",
] as const;
export type DisputeReason = (typeof DISPUTE_REASONS)[number];

/** An authorization that was granted, and that no report shows yet. */
export interface Clearance {
  readonly authorization: string;
  /** Its number among the authorization's requests, from 0. */
  readonly position: number;
  readonly mc: number;
  /** Time of our answer, in epoch milliseconds. */
  readonly at: number;
}

/** Age from which a clearance that no read shows is given back: our answer did not arrive. */
const CLEARANCE_MS = 600_000;

/** The first answer to a request of the network. A repeated request gets it again. */
export interface NetworkAnswer {
  readonly authorization: string;
  readonly position: number;
  /** Null: it was granted. */
  readonly refusal: AuthorizationRefusal | null;
  /** The amount that was asked for. */
  readonly mc: number;
  /** The merchant, as its network names it. */
  readonly merchant: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

export const AUTHORIZATION_REFUSALS = [
  "ABOVE_PAYMENT",
  "NOT_ACTIVE",
  "LIMIT_EXCEEDED",
  "MERCHANT_NOT_ALLOWED",
  "TOO_LATE",
  "CLOSED",
] as const;
export type AuthorizationRefusal = (typeof AUTHORIZATION_REFUSALS)[number];

/** The totals of a payment's books after a report has changed them. */
export interface Booking {
  /** Epoch milliseconds; amounts beyond the payment's own count in the windows of this instant. */
  readonly at: number;
  /** UTC date on which amounts beyond the payment's own are counted. */
  readonly day: string;
  readonly heldMc: number;
  readonly capturedMc: number;
  readonly creditedMc: number;
  readonly recalledMc: number;
  readonly disputedMc: number;
  /** All that had been exceeded by then; only where this booking has exceeded something. */
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

/** A breach as it is shown: a started cent counts whole. */
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
 * Authorizations of one payment that are told apart, at most: a card serves one payment only. Further ones, which only a network
 * can have granted by itself, are one entry with their sums.
 */
export const AUTHORIZATIONS_MAX = 20;

/** Stands for all authorizations beyond those that are told apart; no network's id. */
const FURTHER_AUTHORIZATIONS = "further authorizations";

/** Reports in one read of a payment, at most. */
export const REPORTS_MAX = 1_000;

/** Requests of a network about one payment that are answered each by itself; further ones are refused. */
export const REQUESTS_MAX = 40;

/** Bookings of one payment that are told apart; beyond them the newest takes the place of the one before it. */
export const BOOKINGS_MAX = 40;

/** A report of a network that captures a payment in full as soon as it accepts it. */
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
 * Two reports of one authorization as one. Commutative, associative and idempotent, so that order, repetition and loss of reports do
 * not matter: of what only rises the higher, of the rest the newer by its number of requests, and of equal ones the lower.
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

/** A request that was refused, or a card check of 0: nothing is held or charged, and the payment goes on as it was. */
const isEmpty = ({ authorizedMc, capturedMc, creditedMc, disputedMc, recalledMc }: RailBooks): boolean =>
  authorizedMc + capturedMc + creditedMc + recalledMc + disputedMc === 0;

/**
 * The books with these reports in them, and without the clearances that they show or that they are too late for; the same object where they say nothing new.
 * The reports are a read of the whole payment, so that the sums of what is not told apart only rise, too.
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
  // A granted amount has left the payment's hold, whether the network has heard of it or not.
  for (const { authorization } of books.clearances)
    if (!byId.has(authorization) && !clearances.some((each) => each.authorization === authorization))
      byId.set(authorization, { ...capturedInFull(0), authorization, requests: 0 });
  return { ...books, authorizations: [...byId.values()], clearances };
}

/** Several authorizations as one. */
const totalOf = (reports: readonly RailBooks[]): RailBooks => ({
  authorization: FURTHER_AUTHORIZATIONS,
  requests: sum(reports, ({ requests }) => requests),
  // Captures of a closed authorization take nothing from the open ones.
  authorizedMc: sum(reports, ({ authorizedMc, capturedMc, isOpen }) =>
    isOpen ? Math.max(authorizedMc, capturedMc) : capturedMc,
  ),
  capturedMc: sum(reports, ({ capturedMc }) => capturedMc),
  creditedMc: sum(reports, ({ creditedMc }) => creditedMc),
  recalledMc: sum(reports, ({ recalledMc }) => recalledMc),
  disputedMc: sum(reports, ({ disputedMc }) => disputedMc),
  isOpen: reports.some(({ isOpen }) => isOpen),
});

/** Reports of one read, which may tell an authorization's history, as successive reads would have given them. */
export function roundsOf(reports: readonly RailBooks[]): readonly (readonly RailBooks[])[] {
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

/** Where a payment's money is, in thousandths of a cent. */
export interface Money {
  readonly heldMc: number;
  readonly spentMc: number;
}

export const NO_MONEY: Money = { heldMc: 0, spentMc: 0 };

const sum = <T>(items: readonly T[], mcIn: (item: T) => number): number =>
  items.reduce((total, item) => total + mcIn(item), 0);

/** Whether the network has said anything, or was answered, so that the books alone say where the money is. */
export const isBooked = ({ authorizations, clearances }: Books): boolean =>
  authorizations.length > 0 || clearances.length > 0;

export const capturedIn = ({ authorizations }: Books): number =>
  sum(authorizations, ({ capturedMc }) => capturedMc);

/** Held: granted and not captured, as far as more may be captured. Spent: captured, less what was given back; never below 0. */
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

/** The books with their totals as of now among their bookings, if those have changed. */
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

/** The net amount of a booking: captured less what was given back. */
export const spentIn = ({ capturedMc, creditedMc, recalledMc }: Booking): number =>
  Math.max(0, capturedMc - creditedMc + recalledMc);

/** Parts of a payment's amount, by when they count. */
export interface Counted {
  /** Amount that the payment itself counts with: never more than was left of its hold at any time. */
  readonly ownMc: number;
  /** Granted or forced after that was given back, the oldest first. */
  readonly added: readonly AddedAmount[];
}

interface AddedAmount {
  readonly at: number;
  readonly day: string;
  readonly mc: number;
}

/** What is given back is taken from the newest first. */
export function countedIn({ bookings }: Books, requestedMc: number): Counted {
  let [least, total, addedMc] = [requestedMc, requestedMc, 0];
  const added: AddedAmount[] = [];
  for (const booking of bookings) {
    const { at, capturedMc, creditedMc, day, heldMc, recalledMc } = booking;
    // A refund gives nothing of the hold back: taken back itself, it counts where it was.
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

/** Adds what the last booking has exceeded to what was exceeded before, by level and limit. */
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

/** How far a payment has come on its network. */
export const STAGES = ["armed", "authorized", "captured", "released"] as const;
export type Stage = (typeof STAGES)[number];
