import { isDeepStrictEqual } from "node:util";
import { keccak256, toBytes } from "viem";
import { joined, type RailBooks } from "../../../src/domain/ledger/books.ts";
import { SETTLES_ON } from "../../../src/domain/ledger/payment.ts";
import { usedCents } from "../../../src/domain/money.ts";
import { booksIn, type CardLedgerDocument } from "../../../src/rails/card/network-books.ts";
import type { PaymentEntry, SpentEvent } from "./sources.ts";

/** A disagreement between a rail's own books and the payments' records. */
export interface RailFinding {
  /** The payment, or what the rail calls it. */
  readonly id: string;
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  /** The rail acts before its effect is recorded; never the other way round, if payments are read first. */
  readonly mayBeInFlight: boolean;
}

export const findingText = ({ expected, found, id, what }: RailFinding): string =>
  `${id}: ${what}; expected ${expected}, found ${found}`;

/** A payment's books are those of its network, and payments that no network has charged have none. The network must have been read after the payments. */
export function compareCards(
  payments: readonly PaymentEntry[],
  ledger: readonly CardLedgerDocument[],
): readonly RailFinding[] {
  const known = new Set(payments.map(({ id }) => id));
  const entriesOf = grouped(ledger, ({ transactionId }) => transactionId);
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
    ...payments.flatMap((payment) => compareCard(payment, entriesOf.get(payment.id) ?? [])),
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

/** Returns books in one form, so that two sources can be compared. */
const comparable = ({ authorization: _id, ...books }: RailBooks): Omit<RailBooks, "authorization"> => books;

const booksText = (books: readonly RailBooks[]): string =>
  books.length === 0
    ? "nothing"
    : books
        .map(
          ({ authorizedMc, capturedMc, creditedMc, isOpen, recalledMc }) =>
            `${cents(usedCents(authorizedMc))} authorized, ${cents(usedCents(capturedMc))} captured, ${cents(usedCents(creditedMc))} given back, ${cents(usedCents(recalledMc))} taken back, ${isOpen ? "open" : "closed"}`,
        )
        .join("; ");

/** Sources that wallets and their payments are compared with. */
export interface WalletSources {
  readonly payments: readonly PaymentEntry[];
  /** The wallet of each agent that has one. */
  readonly walletOf: ReadonlyMap<string, string>;
  readonly spent: readonly SpentEvent[];
  /** Units of the token in a cent. */
  readonly unitsPerCent: bigint;
}

/**
 * One `Spent` event for each approved wallet payment, from its agent's wallet, and none for others. The chain must have been
 * read after the payments.
 */
export function compareWallets({
  payments,
  spent,
  unitsPerCent,
  walletOf,
}: WalletSources): readonly RailFinding[] {
  const events = grouped(spent, ({ id }) => id);
  const paid = payments.filter(({ rail, status }) => SETTLES_ON[rail] === "chain" && status === "approved");
  const names = new Map(payments.map(({ id }) => [keccak256(toBytes(id)), id]));
  const paidIds = new Set(paid.map(({ id }) => keccak256(toBytes(id))));
  const findings: RailFinding[] = [];
  for (const { agentId, amountCents, hash, id, to } of paid) {
    const found = events.get(keccak256(toBytes(id))) ?? [];
    const [event] = found;
    if (event === undefined || found.length > 1) {
      const what = "the approved wallet payment on the chain";
      findings.push({
        id,
        what,
        expected: "paid once",
        found: `paid ${String(found.length)} times`,
        mayBeInFlight: false,
      });
      continue;
    }
    const expected = [BigInt(amountCents) * unitsPerCent, to, walletOf.get(agentId), hash]
      .map(String)
      .join(" ");
    const actual = [event.units, event.to, event.wallet, event.hash].map(String).join(" ");
    if (expected !== actual)
      findings.push({
        id,
        what: "units, recipient, wallet or transaction on the chain",
        expected,
        found: actual,
        mayBeInFlight: false,
      });
  }
  for (const { hash, id, units } of spent) {
    if (paidIds.has(id)) continue;
    const what = `the chain's transaction ${hash} spent ${String(units)} units`;
    findings.push({
      id: names.get(id) ?? id,
      what,
      expected: "an approved payment",
      found: "none",
      mayBeInFlight: true,
    });
  }
  return findings;
}

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
