import { keccak256, toBytes } from "viem";
import { SETTLES_ON } from "../../../src/domain/ledger/payment.ts";
import type { LedgerEntry, PaymentEntry, SpentEvent } from "./sources.ts";

/** Where a rail's own books and the payments' records disagree. */
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

/**
 * One capture for each approved card payment, one reversal too for each reversed one, and none for others. The ledger
 * must have been read after the payments.
 */
export function compareCards(
  payments: readonly PaymentEntry[],
  ledger: readonly LedgerEntry[],
): readonly RailFinding[] {
  const known = new Set(payments.map(({ id }) => id));
  const entriesOf = grouped(ledger, ({ transactionId }) => transactionId);
  const unknown = [...entriesOf]
    .filter(([transactionId]) => !known.has(transactionId))
    .map(([id, entries]) => ({
      id,
      what: `the processor has ${entriesText(entries)} (${entries[0]?.merchant ?? ""}, ${cents(entries[0]?.amountCents ?? 0)})`,
      expected: "its payment's record",
      found: "none",
      mayBeInFlight: true,
    }));
  return [
    ...payments.flatMap((payment) => compareCard(payment, entriesOf.get(payment.id) ?? [])),
    ...unknown,
  ];
}

function compareCard(payment: PaymentEntry, entries: readonly LedgerEntry[]): RailFinding[] {
  const { amountCents, id, rail, status, to } = payment;
  const count = (expected: LedgerEntry["status"]): number =>
    entries.filter((entry) => entry.status === expected).length;
  const isPaid = SETTLES_ON[rail] === "processor" && (status === "approved" || status === "reversed");
  const expected = { captured: isPaid ? 1 : 0, reversed: isPaid && status === "reversed" ? 1 : 0 };
  const findings: RailFinding[] = [];
  const isLess = count("captured") < expected.captured || count("reversed") < expected.reversed;
  if (isLess || count("captured") !== expected.captured || count("reversed") !== expected.reversed) {
    findings.push({
      id,
      what: `the ${status} ${rail} payment and the processor's ledger`,
      expected: `${String(expected.captured)} captures, ${String(expected.reversed)} reversals`,
      found: entriesText(entries),
      mayBeInFlight: !isLess && (status === "pending" || status === "approved"),
    });
  }
  const other = entries.find((entry) => entry.amountCents !== amountCents || entry.merchant !== to);
  if (other !== undefined) {
    findings.push({
      id,
      what: "the processor took another amount, or for another merchant",
      expected: `${cents(amountCents)} for ${to}`,
      found: `${cents(other.amountCents)} for ${other.merchant}`,
      mayBeInFlight: false,
    });
  }
  return findings;
}

function entriesText(entries: readonly LedgerEntry[]): string {
  const count = (expected: LedgerEntry["status"]): string =>
    String(entries.filter((entry) => entry.status === expected).length);
  return `${count("captured")} captures, ${count("reversed")} reversals`;
}

/** What wallets and their payments are compared with. */
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
