import { usedCents } from "../money.ts";
import { capturedIn, type RailBooks } from "./books.ts";
import type { MoneyHolder } from "./payment.ts";

/** The amounts of a payment in cents. */
export interface Amounts {
  readonly requestedCents: number;
  readonly authorizedCents: number;
  readonly capturedCents: number;
  readonly creditedCents: number;
}

export function amountsOf({ books, request }: MoneyHolder): Amounts {
  const sum = (mcIn: (books: RailBooks) => number): number =>
    usedCents((books?.authorizations ?? []).reduce((total, each) => total + mcIn(each), 0));
  return {
    requestedCents: usedCents(request.amountMc),
    authorizedCents: sum(({ authorizedMc }) => authorizedMc),
    capturedCents: sum(({ capturedMc }) => capturedMc),
    creditedCents: sum(({ creditedMc, recalledMc }) => Math.max(0, creditedMc - recalledMc)),
  };
}

/** The amount that a payment counts with: what was captured, and until then what was asked for. */
export function amountMcOf({ books, request }: MoneyHolder): number {
  const capturedMc = books === null ? 0 : capturedIn(books);
  return capturedMc > 0 ? capturedMc : request.amountMc;
}

/** Amounts in cents. */
export const amountCentsOf = (payment: MoneyHolder): number => usedCents(amountMcOf(payment));
