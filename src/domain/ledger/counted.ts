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
export function countedSince(payment: WindowedPayment, since: number): number {
  const { books, request } = payment;
  const isOwn = windowAtOf(payment) >= since;
  if (books === null || !isBooked(books)) return isOwn ? totalOf(moneyOf(payment)) : 0;
  const { added, ownMc } = countedIn(books, request.amountMc);
  return added.reduce((sum, { at, mc }) => (at >= since ? sum + mc : sum), isOwn ? ownMc : 0);
}

/** Returns a payment's amount in each window. */
export const countedInEach = (payment: WindowedPayment | null, { starts }: WindowBounds): PerPeriod =>
  starts.map((start) => (payment === null ? 0 : countedSince(payment, start)));
