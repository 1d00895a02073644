import type { Document } from "mongodb";
import { capturedInFull, type NetworkEntry, type RailBooks } from "../../domain/ledger/books.ts";

/** The books of the sandbox's network: its entries, and what they say of a payment. */

/** An effect on the network's books; the id makes each effect of a transaction happen once. */
export interface CardLedgerDocument extends Document {
  _id: string;
  organizationId: string;
  transactionId: string;
  merchant: string;
  /** Cents of this entry. */
  amountCents: number;
  amountMc: number;
  status: NetworkEntry;
  createdAt: Date;
  /** Granted with this entry; only a payment's first one grants anything. */
  authorizedMc?: number;
  /** Whether more may be captured after the first entry. */
  isOpen?: boolean;
  /** Time until which the capture is not final. */
  settlesAt: Date | null;
  /** When the network has more to say than the first entry: found by what was changed since. */
  changedAt?: Date;
}

const sumOf = (entries: readonly CardLedgerDocument[], ...statuses: CardLedgerDocument["status"][]): number =>
  entries.reduce((sum, { amountMc, status }) => (statuses.includes(status) ? sum + amountMc : sum), 0);

/** The books of a payment after each of its entries, the oldest first: each refund can be told apart. */
export const historyIn = (entries: readonly CardLedgerDocument[]): readonly RailBooks[] =>
  entries
    .toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime())
    .flatMap((_, index, ordered) => booksIn(ordered.slice(0, index + 1)));

/** Of one payment, from its entries. */
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
