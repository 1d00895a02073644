import { booked, type Books, capturedInFull, NO_BOOKS } from "../domain/ledger/books.ts";
import { utcDate } from "../domain/ledger/usage.ts";

/**
 * Stored form of a payment's books. Nearly every payment is charged in full at once; its record holds only the time of
 * the charge, since everything else follows from the amount.
 */

/** Books of a payment that was charged in full once. */
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

/** Whether books equal `plain`, whose parts hold only primitive values. */
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

/** Whether `other` has every property of `one`, with the same value. */
function isSameIn<T extends object>(one: T | undefined, other: T | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  for (const name in one) if (one[name] !== other[name]) return false;
  return true;
}

export function recordedBooks({
  amountMc,
  books,
}: {
  readonly amountMc: number;
  readonly books: StoredBooks | null;
}): Books | null {
  return books !== null && "inFullAt" in books ? chargedInFull(amountMc, books.inFullAt) : books;
}
