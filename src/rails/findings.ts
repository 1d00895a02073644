import type { RailBooks } from "../domain/ledger/books.ts";
import type { Rail, TransactionStatus } from "../domain/ledger/payment.ts";
import { recordedBooks } from "../store/stored-books.ts";
import type { TransactionDocument } from "../store/documents.ts";

/** The fields of a payment's record that rails compare. */
export interface PaymentEntry {
  readonly id: string;
  readonly agentId: string;
  readonly rail: Rail;
  /** The merchant, or the account on the chain. */
  readonly to: string;
  readonly amountCents: number;
  readonly authorizations: readonly RailBooks[];
  readonly status: TransactionStatus;
  readonly hash: string | null;
  /** Whether the payment was made on an issuer's card, so that the issuer has the books. */
  readonly isOnCard: boolean;
}

export const paymentEntry = ({
  _id,
  agentId,
  amountCents,
  ledgerState,
  onChainTxHash,
  rail,
  recipient,
  status,
}: TransactionDocument): PaymentEntry => ({
  id: _id,
  agentId,
  authorizations: recordedBooks(ledgerState)?.authorizations ?? [],
  rail,
  to: recipient,
  amountCents,
  status,
  hash: onChainTxHash,
  isOnCard: ledgerState.card !== undefined,
});

/** Difference between a rail's own books and the payments' records. */
export interface RailFinding {
  /** The payment, or what the rail calls it. */
  readonly id: string;
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  /**
   * Whether the difference may be a payment in flight: the rail acts before the effect is recorded, never after,
   * provided that payments are read first.
   */
  readonly mayBeInFlight: boolean;
}

/** Returns the finding of a rail's record that something other than the service has changed. */
export const alteredRecord = (paymentId: string | null, recordId: string): RailFinding => ({
  id: paymentId ?? recordId,
  what: `the record ${recordId}`,
  expected: "as the service wrote it",
  found: "changed since",
  mayBeInFlight: false,
});

export const findingText = ({ expected, found, id, what }: RailFinding): string =>
  `${id}: ${what}; expected ${expected}, found ${found}`;

export const cents = (amount: number): string => `${(amount / 100).toFixed(2)} USD`;

export function grouped<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
