import { expect } from "chai";
import {
  moneyIn,
  NO_BOOKS,
  type RailBooks,
  roundsOf,
  withReports,
} from "../../../src/domain/ledger/books.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { CallRefused } from "../../../src/engines/card-network/call-refused.ts";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import type { Authorization, Dispute, Transaction } from "../../../src/engines/card-network/shapes.ts";
import type { Random } from "../../../lab/random.ts";

export const MERCHANT = {
  name: "Rocket Rides",
  category: "taxicabs_limousines",
  category_code: "4121",
  network_id: "1",
  country: "US",
};
const AUTHORIZATIONS_MAX = 6;

/** A virtual card with this all-time limit. */
export function cardOf(network: CardNetwork, limitCents: number): string {
  const cardholder = network.addCardholder({ name: "Agents", type: "company", metadata: {} });
  const spending_controls = { spending_limits: [{ amount: limitCents, interval: "all_time" }] };
  return network.addCard({ cardholder, status: "active", metadata: {}, spending_controls }).id;
}

const of = {
  authorizations: (network: CardNetwork, card: string) =>
    network.store.all<Authorization>("issuing.authorization").filter((found) => found.card.id === card),
  transactions: (network: CardNetwork, card: string) =>
    network.store.all<Transaction>("issuing.transaction").filter((found) => found.card === card),
  disputes: (network: CardNetwork, card: string) => {
    const own = new Set(of.transactions(network, card).map(({ id }) => id));
    return network.store.all<Dispute>("issuing.dispute").filter(({ transaction }) => own.has(transaction));
  },
};
export const historyOf = of;

/** Something that a merchant or the network may do with a card; what it refuses is no play. */
export async function play(network: CardNetwork, card: string, random: Random): Promise<void> {
  const cents = random.between(1, 5_000);
  const some = random.chance(0.5) ? cents : null;
  const authorizations = of.authorizations(network, card);
  const onAuthorization = (work: (id: string) => unknown): unknown =>
    authorizations.length === 0 ? null : work(random.pick(authorizations).id);
  const onTransaction = (type: Transaction["type"], work: (id: string) => unknown): unknown => {
    const found = of.transactions(network, card).filter((each) => each.type === type && each.amount !== 0);
    return found.length === 0 ? null : work(random.pick(found).id);
  };
  const onDispute = (work: (id: string) => unknown): unknown => {
    const found = of.disputes(network, card);
    return found.length === 0 ? null : work(random.pick(found).id);
  };
  const plays: readonly (() => unknown)[] = [
    () => (authorizations.length < AUTHORIZATIONS_MAX ? network.authorize(card, cents, MERCHANT) : null),
    () => onAuthorization((id) => network.increment(id, cents)),
    () => onAuthorization((id) => network.capture(id, some, random.chance(0.4))),
    () => onAuthorization((id) => network.capture(id, some, false)),
    () => onAuthorization((id) => network.captureLate(id, cents)),
    () => onAuthorization((id) => network.reverse(id, some)),
    () => onAuthorization((id) => (random.chance(0.3) ? network.expire(id) : null)),
    () => onTransaction("capture", (id) => network.refund(id, some)),
    () => onTransaction("refund", (id) => network.reverseRefund(id)),
    () => network.refundUnlinked(card, cents, MERCHANT),
    () => (random.chance(0.3) ? network.forceCapture(card, cents, MERCHANT) : null),
    () =>
      onTransaction("capture", (id) =>
        network.addDispute({ transaction: id, amount: null, evidence: {}, metadata: {} }),
      ),
    () => onDispute((id) => network.submitDispute(id)),
    () => onDispute((id) => network.endDispute(id, random.pick(["credit", "lost", "won"]))),
  ];
  try {
    await random.pick(plays)();
  } catch (error) {
    if (!(error instanceof CallRefused)) throw error;
  }
}

/** The books that a ledger has after these reads. */
export const joinedBooks = (reads: readonly (readonly RailBooks[])[]): readonly RailBooks[] =>
  reads
    .flatMap(roundsOf)
    .reduce((books, reports) => withReports(books, reports, 0), NO_BOOKS)
    .authorizations.toSorted((one, other) => (one.authorization < other.authorization ? -1 : 1));

/** The ledger's books of a card are the network's own totals. */
export function expectTotals(network: CardNetwork, card: string, books: readonly RailBooks[]): void {
  const byId = new Map(books.map((each) => [each.authorization, each]));
  for (const totals of network.totalsOf(card)) {
    const found = byId.get(totals.authorization ?? "");
    const sums = [totals.captured, totals.credited, totals.recalled, totals.disputed, totals.held];
    // A request that was refused changes nothing, and is in no books.
    if (sums.every((sum) => sum === 0) && found === undefined) continue;
    expect(found, JSON.stringify(totals)).to.include({
      requests: totals.requests,
      capturedMc: mcOf(totals.captured),
      creditedMc: mcOf(totals.credited),
      recalledMc: mcOf(totals.recalled),
      disputedMc: mcOf(totals.disputed),
      isOpen: totals.isOpen,
    });
    if (found === undefined) continue;
    const { heldMc } = moneyIn({ authorizations: [found], clearances: [] });
    const least = mcOf(totals.held);
    // Of an `amount` that does not fall with captures, a reduction can't be told from one.
    const most =
      !network.settings.amountFalls && totals.isReduced ? mcOf(totals.held + totals.captured) : least;
    expect(heldMc, JSON.stringify(totals)).to.be.within(least, most);
  }
}
