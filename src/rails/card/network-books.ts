import type { Document } from "mongodb";
import { capturedInFull, type NetworkEntry, type RailBooks } from "../../domain/ledger/books.ts";

/** The books of the sandbox's network: its entries, and a payment's state derived from them. */

/** An effect on the network's books. Its id makes each effect of a transaction happen once. */
export interface CardLedgerDocument extends Document {
  _id: string;
  organizationId: string;
  transactionId: string;
  merchant: string;
  amountCents: number;
  amountMc: number;
  status: NetworkEntry;
  createdAt: Date;
  /** Amount granted with this entry; only a payment's first entry grants one. */
  authorizedMc?: number;
  /** Whether more may be captured after the first entry. */
  isOpen?: boolean;
  /** Time at which the capture becomes final; null if it is final. */
  settlesAt: Date | null;
  /** Time of an entry after the first one, by which changed payments are found. */
  changedAt?: Date;
}

const sumOf = (entries: readonly CardLedgerDocument[], ...statuses: CardLedgerDocument["status"][]): number =>
  entries.reduce((sum, { amountMc, status }) => (statuses.includes(status) ? sum + amountMc : sum), 0);

/** Returns a payment's books after each of its entries, oldest first, so that each refund can be told apart. */
export const historyIn = (entries: readonly CardLedgerDocument[]): readonly RailBooks[] =>
  entries
    .toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime())
    .flatMap((_, index, ordered) => booksIn(ordered.slice(0, index + 1)));

export function booksIn(entries: readonly CardLedgerDocument[]): readonly RailBooks[] {
  const first = entries.find(({ authorizedMc }) => authorizedMc !== undefined);
  if (first === undefined) return [];
  const capturedMc = sumOf(entries, "captured");
  const isReleased = entries.some(({ status }) => status === "released");
  return [
    {
      ...capturedInFull(first.authorizedMc ?? 0),
      capturedMc,
      creditedMc: sumOf(entries, "refunded"),
      recalledMc: sumOf(entries, "refund_reversed", "dispute_lost"),
      disputedMc: sumOf(entries, "disputed"),
      isOpen: first.isOpen === true && !isReleased,
    },
  ];
}
