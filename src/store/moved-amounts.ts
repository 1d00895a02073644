import { spentIn } from "../domain/ledger/books.ts";
import { type Payment } from "../domain/ledger/payment.ts";
import { amountCentsOf, amountMcOf } from "../domain/ledger/amounts.ts";
import { MC_PER_CENT, usedCents } from "../domain/money.ts";
import type { MovedAmount } from "./documents.ts";

/** Time after a payment's creation within which bookings count at the creation, so that most records need no more. */
const SOON_MS = 60_000;

/**
 * Returns the amounts to add to the payment's amount at its creation, so that every capture and refund counts when it
 * was booked. A payment that was not charged counts as requested, at its creation.
 */
export function movedAmounts(payment: Payment): MovedAmount[] {
  const moved = bookedAmounts(payment);
  // Corrects the rounding of a price below a cent: sums count the exact amount.
  const rest = amountMcOf(payment) / MC_PER_CENT - amountCentsOf(payment);
  return rest === 0 ? moved : [...moved, { at: new Date(payment.createdAt), cents: rest }];
}

function bookedAmounts(payment: Payment): MovedAmount[] {
  const { books, createdAt, status } = payment;
  if (books === null || (status !== "approved" && status !== "reversed")) return [];
  let net = 0;
  let soonCents = 0;
  const later: MovedAmount[] = [];
  for (const booking of books.bookings) {
    const now = usedCents(spentIn(booking));
    const cents = now - net;
    net = now;
    if (booking.at - createdAt <= SOON_MS) soonCents += cents;
    else if (cents !== 0) later.push({ at: new Date(booking.at), cents });
  }
  const atOnce = soonCents - amountCentsOf(payment);
  return atOnce === 0 ? later : [{ at: new Date(createdAt), cents: atOnce }, ...later];
}
