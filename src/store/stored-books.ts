import { booked, type Books, capturedInFull, NO_BOOKS } from "../domain/ledger/books.ts";
import type { Amounts } from "../domain/ledger/payment.ts";
import { utcDate } from "../domain/ledger/usage.ts";

/**
 * Stored form of a payment's books and amounts. Nearly every payment is charged in full at once; its record has the time of
 * that alone, since all else follows from the amount.
 */

/** The books of a payment that was charged in full, and nothing else. */
interface ChargedInFull {
  /** Epoch milliseconds. */
  readonly inFullAt: number;
}

export type StoredBooks = Books | ChargedInFull;

const chargedInFull = (amountMc: number, at: number): Books =>
  booked({ ...NO_BOOKS, authorizations: [capturedInFull(amountMc)] }, at, utcDate(at));

export function storedBooks(books: Books | null, amountMc: number): StoredBooks | null {
  const booking = books?.bookings[0];
  if (books === null || booking === undefined) return books;
  return isSame(books, chargedInFull(amountMc, booking.at)) ? { inFullAt: booking.at } : books;
}

/** Compares books part by part, with nothing but plain values in the parts of `plain`. */
function isSame(books: Books, plain: Books): boolean {
  const { answers, authorizations, bookings, breaches, clearances } = books;
  const others = answers.length + breaches.length + clearances.length;
  if (others > 0 || authorizations.length !== 1 || bookings.length !== 1) return false;
  return (
    isSameIn(authorizations[0], plain.authorizations[0]) &&
    isSameIn(plain.authorizations[0], authorizations[0]) &&
    isSameIn(bookings[0], plain.bookings[0]) &&
    isSameIn(plain.bookings[0], bookings[0])
  );
}

/** Whether the other has all that the first has. */
function isSameIn<T extends object>(one: T | undefined, other: T | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  for (const name in one) if (one[name] !== other[name]) return false;
  return true;
}

/** Returns the books in a record. */
export function recordedBooks({
  amountMc,
  books,
}: {
  readonly amountMc: number;
  readonly books: StoredBooks | null;
}): Books | null {
  return books !== null && "inFullAt" in books ? chargedInFull(amountMc, books.inFullAt) : books;
}

/** Amounts of a payment that was charged in full, by the amount that it counts with. */
const amountsInFull = (cents: number): Amounts => ({
  requestedCents: cents,
  authorizedCents: cents,
  capturedCents: cents,
  creditedCents: 0,
});

/** Empty where the payment was charged in full. */
export function storedAmounts(amounts: Amounts): { readonly amounts?: Amounts } {
  const { authorizedCents, capturedCents, creditedCents, requestedCents } = amounts;
  const isInFull =
    capturedCents === requestedCents && authorizedCents === requestedCents && creditedCents === 0;
  return isInFull ? {} : { amounts };
}

/** Returns the amounts in a record. */
export const recordedAmounts = ({
  amountCents,
  amounts,
}: {
  readonly amountCents: number;
  readonly amounts?: Amounts;
}): Amounts => amounts ?? amountsInFull(amountCents);
