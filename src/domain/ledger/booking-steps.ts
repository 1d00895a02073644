import { type Booking, type Books, capturedInFull } from "./books.ts";
import { type Payment, withBooks } from "./payment.ts";

/** A booking, the totals before it, and the payment as of the booking. */
export interface BookingStep {
  readonly booking: Booking;
  readonly before: Totals;
  readonly as: Payment;
}

export type Totals = Omit<Booking, "at" | "breaches" | "day">;

/** Returns a payment's history on its network, step by step. */
export function bookingSteps(payment: Payment): readonly BookingStep[] {
  const { books, request } = payment;
  if (books === null) return [];
  let before: Totals = {
    heldMc: request.amountMc,
    capturedMc: 0,
    creditedMc: 0,
    recalledMc: 0,
    disputedMc: 0,
  };
  return books.bookings.map((booking, index) => {
    const step = { booking, before, as: asBooked(payment, books, index) };
    before = booking;
    return step;
  });
}

/** Returns the payment as of one of its bookings. Bookings contain only the sums of its authorizations. */
function asBooked(payment: Payment, books: Books, index: number): Payment {
  const bookings = books.bookings.slice(0, index + 1);
  const booking = bookings.at(-1);
  if (booking === undefined || index === books.bookings.length - 1) return payment;
  const { at, capturedMc, creditedMc, disputedMc, heldMc, recalledMc } = booking;
  const sums = { capturedMc, creditedMc, disputedMc, recalledMc, isOpen: heldMc > 0 };
  const then: Books = {
    authorizations: [{ ...capturedInFull(heldMc + capturedMc), ...sums }],
    clearances: [],
    answers: [],
    bookings,
    breaches: bookings.findLast(({ breaches }) => breaches !== undefined)?.breaches ?? [],
  };
  const ended = { ...payment, status: "pending", deniedAt: null } as const;
  return { ...withBooks(ended, then, at), revision: payment.revision };
}
