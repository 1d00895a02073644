import { countedIn, isBooked } from "./books.ts";
import type { PerPeriod, WindowBounds } from "./calendar.ts";
import { moneyOf, type MoneyHolder, type StoredPayment, totalOf } from "./payment.ts";

/**
 * Returns the part of a payment's amount that counts on a day. Amounts granted or forced after its hold was given back
 * count on the day they were booked.
 */
export function countedOn(payment: MoneyHolder & Pick<StoredPayment, "day">, date: string): number {
  const { books, day, request } = payment;
  if (books === null || !isBooked(books)) return day === date ? totalOf(moneyOf(payment)) : 0;
  const counted = countedIn(books, request.amountMc);
  const addedMc = counted.added.reduce((sum, added) => (added.day === date ? sum + added.mc : sum), 0);
  return (day === date ? counted.ownMc : 0) + addedMc;
}

/** Returns the instant at which a payment counts in windows: its creation or, once approved, its approval. */
export const windowAtOf = ({ createdAt, windowAt }: Pick<StoredPayment, "createdAt" | "windowAt">): number =>
  windowAt ?? createdAt;

type WindowedPayment = MoneyHolder & Pick<StoredPayment, "createdAt" | "windowAt">;

/** Returns the part of a payment's amount that counts from an instant on. */
export const countedSince = (payment: WindowedPayment, since: number): number =>
  sumSince(partsOf(payment), since);

/** Returns a payment's amount in each window. */
export function countedInEach(payment: WindowedPayment, { starts }: Pick<WindowBounds, "starts">): PerPeriod {
  const parts = partsOf(payment);
  return starts.map((start) => sumSince(parts, start));
}

/** Returns the amount that a change of a payment adds to each window. `before` is null for a new payment. */
export function addedInEach(
  before: WindowedPayment | null,
  after: WindowedPayment,
  bounds: WindowBounds,
): PerPeriod {
  const has = countedInEach(after, bounds);
  if (before === null) return has;
  const had = countedInEach(before, bounds);
  return has.map((mc, place) => mc - (had[place] ?? 0));
}

/**
 * Whether a change of a booked payment adds to no day and no window. The part that counts with the payment itself rises
 * only with its total.
 */
export const addsNothing = (before: MoneyHolder, after: WindowedPayment): boolean =>
  totalOf(moneyOf(after)) <= totalOf(moneyOf(before)) && partsOf(after).length === 1;

type Parts = readonly { readonly at: number; readonly mc: number }[];

/** Returns the parts of a payment's amount with the instants at which they count. */
function partsOf(payment: WindowedPayment): Parts {
  const { books, request } = payment;
  const at = windowAtOf(payment);
  if (books === null || !isBooked(books)) return [{ at, mc: totalOf(moneyOf(payment)) }];
  const { added, ownMc } = countedIn(books, request.amountMc);
  return [{ at, mc: ownMc }, ...added];
}

const sumSince = (parts: Parts, since: number): number =>
  parts.reduce((sum, { at, mc }) => (at >= since ? sum + mc : sum), 0);
