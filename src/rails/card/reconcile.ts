import { isDeepStrictEqual } from "node:util";
import { joined, type RailBooks } from "../../domain/ledger/books.ts";
import { SETTLES_ON } from "../../domain/ledger/payment.ts";
import { usedCents } from "../../domain/money.ts";
import { cents, grouped, type PaymentEntry, type RailFinding } from "../findings.ts";
import type { RailReconciliation } from "../folder.ts";
import { booksIn, type CardLedgerDocument } from "./network-books.ts";

export const cardReconciliation: RailReconciliation = {
  kind: "card_ledger_differs",
  advice:
    "Compare the payment, the ledger's history and the processor's entry; the processor's entry is what was really paid.",
  async findings({ collections: { cardLedger }, organizationId, paymentIds, payments }) {
    const some = paymentIds === null ? {} : { transactionId: { $in: [...paymentIds] } };
    return compareCards(payments, await cardLedger.find({ organizationId, ...some }).toArray());
  },
};

/**
 * Checks that payments' books equal their networks', and are empty if uncharged. Read the network after the payments.
 */
export function compareCards(
  payments: readonly PaymentEntry[],
  ledger: readonly CardLedgerDocument[],
): readonly RailFinding[] {
  const entriesOf = grouped(ledger, ({ transactionId }) => transactionId);
  const known = new Set(payments.map(({ id }) => id));
  const unknown = [...entriesOf]
    .filter(([transactionId]) => !known.has(transactionId))
    .map(([id, entries]) => ({
      id,
      what: `the network has ${booksText(booksIn(entries))} (${entries[0]?.merchant ?? ""})`,
      expected: "its payment's record",
      found: "none",
      mayBeInFlight: true,
    }));
  return [
    ...payments
      .filter(({ isOnCard }) => !isOnCard)
      .flatMap((payment) => compareCard(payment, entriesOf.get(payment.id) ?? [])),
    ...unknown,
  ];
}

function compareCard(
  { authorizations, id, rail, to }: PaymentEntry,
  entries: readonly CardLedgerDocument[],
): RailFinding[] {
  const findings: RailFinding[] = [];
  const other = entries.find(({ merchant }) => merchant !== to);
  if (other !== undefined) {
    const what = "the network charged for another merchant";
    findings.push({ id, what, expected: to, found: other.merchant, mayBeInFlight: false });
  }
  const recorded = SETTLES_ON[rail] === "processor" ? authorizations : [];
  const charged = booksIn(entries);
  if (isDeepStrictEqual(recorded.map(comparable), charged.map(comparable))) return findings;
  const isAhead = charged.some((books) =>
    isDeepStrictEqual(comparable(joined(recorded[0] ?? books, books)), comparable(books)),
  );
  findings.push({
    id,
    what: "the network's books of the payment",
    expected: booksText(recorded),
    found: booksText(charged),
    mayBeInFlight: isAhead,
  });
  return findings;
}

/** Returns books in a form that does not depend on their source. */
const comparable = ({ authorization: _id, ...books }: RailBooks): Omit<RailBooks, "authorization"> => books;

export const booksText = (books: readonly RailBooks[]): string =>
  books.length === 0
    ? "nothing"
    : books
        .map(
          ({ authorizedMc, capturedMc, creditedMc, isOpen, recalledMc }) =>
            `${cents(usedCents(authorizedMc))} authorized, ${cents(usedCents(capturedMc))} captured, ${cents(usedCents(creditedMc))} given back, ${cents(usedCents(recalledMc))} taken back, ${isOpen ? "open" : "closed"}`,
        )
        .join("; ");
