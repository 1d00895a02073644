import { usedCents } from "../money.ts";
import { capturedIn, type RailBooks } from "./books.ts";
import type { MoneyHolder } from "./payment.ts";

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

/** Returns the amount that counts: the captured one; until the capture, the requested one. */
export function amountMcOf({ books, request }: MoneyHolder): number {
  const capturedMc = books === null ? 0 : capturedIn(books);
  return capturedMc > 0 ? capturedMc : request.amountMc;
}

export const amountCentsOf = (payment: MoneyHolder): number => usedCents(amountMcOf(payment));
