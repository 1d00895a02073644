import type { RailBooks } from "../../domain/ledger/books.ts";
import { mcOf } from "../../domain/money.ts";
import type { AuthorizationObject, DisputeObject, TransactionObject } from "./objects.ts";

/** Stripe's records of a card, oldest first. */
export interface CardHistory {
  /** Read before the transactions: see `authorizedCents`. */
  readonly authorizations: readonly AuthorizationObject[];
  readonly transactions: readonly TransactionObject[];
  readonly disputes: readonly DisputeObject[];
}

type Gross = Pick<RailBooks, "capturedMc" | "creditedMc" | "recalledMc" | "disputedMc">;
const NOTHING: Gross = { capturedMc: 0, creditedMc: 0, recalledMc: 0, disputedMc: 0 };

/** A movement of money, or a dispute. */
interface Movement extends Gross {
  /** Empty for movements without an authorization: forced captures, unlinked refunds. */
  readonly authorization: string;
  readonly at: number;
}

type Terms = Pick<RailBooks, "requests" | "authorizedMc" | "isOpen">;
const NO_REQUEST: Terms = { requests: 0, authorizedMc: 0, isOpen: false };

/**
 * Returns a card's books: for each authorization, one report after each movement of money, oldest first. Authorizations
 * that were never granted come last.
 */
export function booksFrom(history: CardHistory): readonly RailBooks[] {
  const movements = movementsIn(history);
  const granted = history.authorizations.filter(isGranted);
  const refused = history.authorizations.filter((found) => !isGranted(found));
  const terms = new Map([...granted, ...refused].map((found) => [found.id, termsOf(found)]));
  const ids = new Set([...terms.keys(), ...movements.map(({ authorization }) => authorization)]);
  return [...ids].flatMap((authorization) => {
    const own = movements.filter((movement) => movement.authorization === authorization);
    return reportsOf(authorization, terms.get(authorization) ?? NO_REQUEST, own);
  });
}

function reportsOf(authorization: string, terms: Terms, movements: readonly Movement[]): RailBooks[] {
  if (movements.length === 0) return [{ authorization, ...terms, ...NOTHING }];
  let total = NOTHING;
  return movements.map((movement, at) => {
    total = plus(total, movement);
    const isFollowed = terms.requests > 0 && movements.slice(at + 1).some(({ capturedMc }) => capturedMc > 0);
    return { authorization, ...terms, ...total, isOpen: terms.isOpen || isFollowed };
  });
}

const plus = (one: Gross, other: Gross): Gross => ({
  capturedMc: one.capturedMc + other.capturedMc,
  creditedMc: one.creditedMc + other.creditedMc,
  recalledMc: one.recalledMc + other.recalledMc,
  disputedMc: one.disputedMc + other.disputedMc,
});

const termsOf = (found: AuthorizationObject): Terms => ({
  requests: found.request_history.length,
  authorizedMc: mcOf(authorizedCents(found)),
  isOpen: found.status === "pending" && isGranted(found),
});

const isGranted = ({ request_history }: AuthorizationObject): boolean =>
  request_history.some(({ approved }) => approved);

/**
 * Cents that were granted and not released, including captured ones. `amount` falls with reversals; Stripe does not say
 * whether it also falls with captures. Adding the captures is right if it does, and too high by at most the captures if
 * it does not. The result is never too low, nor above the granted amount.
 */
function authorizedCents({ amount, request_history, transactions }: AuthorizationObject): number {
  const granted = sum(request_history, (request) => (request.approved ? request.amount : 0));
  const captured = sum(transactions, ({ type, amount: change }) =>
    isRefund(type) ? 0 : Math.max(0, -change),
  );
  return Math.max(0, Math.min(granted, amount + captured));
}

function movementsIn({ disputes, transactions }: CardHistory): readonly Movement[] {
  const authorizationOf = new Map(transactions.map(({ authorization, id }) => [id, authorization ?? ""]));
  const moved = transactions.map(({ amount, authorization, created, type }): Movement => ({
    authorization: authorization ?? "",
    at: created,
    ...NOTHING,
    [kindOf(amount, type)]: mcOf(Math.abs(amount)),
  }));
  const disputed = disputes.flatMap(({ amount, balance_transactions, created, status, transaction }) => {
    const authorization = authorizationOf.get(transaction) ?? "";
    const isFiled = status !== "unsubmitted" && status !== "expired";
    const filed: Movement[] = isFiled
      ? [{ authorization, at: created, ...NOTHING, disputedMc: mcOf(amount) }]
      : [];
    const credits = balance_transactions.map((change): Movement => ({
      authorization,
      at: change.created,
      ...NOTHING,
      [change.amount < 0 ? "recalledMc" : "creditedMc"]: mcOf(Math.abs(change.amount)),
    }));
    return [...filed, ...credits];
  });
  return [...moved, ...disputed].toSorted((one, other) => one.at - other.at);
}

/** Returns a movement's kind. Refunds raise the balance; only captures and reversed refunds lower it. */
function kindOf(amount: number, type: string): keyof Gross {
  if (amount >= 0) return "creditedMc";
  return isRefund(type) ? "recalledMc" : "capturedMc";
}

const isRefund = (type: string): boolean => type.startsWith("refund");

const sum = <T>(items: readonly T[], centsIn: (item: T) => number): number =>
  items.reduce((total, item) => total + centsIn(item), 0);
