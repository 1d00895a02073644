import { isDeepStrictEqual } from "node:util";
import { keccak256, toBytes } from "viem";
import { joined, type RailBooks } from "../../../src/domain/ledger/books.ts";
import { SETTLES_ON } from "../../../src/domain/ledger/payment.ts";
import { usedCents } from "../../../src/domain/money.ts";
import { booksIn, type CardLedgerDocument } from "../../../src/rails/card/network-books.ts";
import { cents, grouped, type RailFinding } from "./findings.ts";
import { compareTopUps, type PocketSources, topUpsOf } from "./pockets.ts";
import type { PaymentEntry, SpentEvent } from "./sources.ts";

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

/** The same books in one form, however they came. */
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

/** What wallets and their payments are compared with. */
export interface WalletSources {
  readonly payments: readonly PaymentEntry[];
  /** The wallet of each agent that has one. */
  readonly walletOf: ReadonlyMap<string, string>;
  readonly spent: readonly SpentEvent[];
  readonly pockets: Pick<PocketSources, "pockets" | "signed">;
  /** Units of the token in a cent. */
  readonly unitsPerCent: bigint;
}

/**
 * One `Spent` event for each approved wallet payment, from its agent's wallet, and none for others. The chain must have been
 * read after the payments.
 */
export function compareWallets({
  payments,
  pockets: { pockets, signed },
  spent,
  unitsPerCent,
  walletOf,
}: WalletSources): readonly RailFinding[] {
  const events = grouped(spent, ({ id }) => id);
  const topUps = topUpsOf(pockets);
  const fromPockets = new Set(signed.map(({ transactionId }) => transactionId));
  const paid = payments.filter(
    ({ id, rail, status }) => SETTLES_ON[rail] === "chain" && status === "approved" && !fromPockets.has(id),
  );
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
    if (paidIds.has(id) || topUps.has(id)) continue;
    const what = `the chain's transaction ${hash} spent ${String(units)} units`;
    findings.push({
      id: names.get(id) ?? id,
      what,
      expected: "an approved payment",
      found: "none",
      mayBeInFlight: true,
    });
  }
  return [...findings, ...compareTopUps(spent, topUps)];
}
