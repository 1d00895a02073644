import { expect } from "chai";
import type { RailBooks } from "../../../src/domain/ledger/books.ts";
import { CardNetwork } from "../../../src/engines/card-network/network.ts";
import { ObjectStore } from "../../../src/engines/card-network/store.ts";
import { booksFrom } from "../../../src/rails/stripe/books.ts";
import { authorizationObject, disputeObject, transactionObject } from "../../../src/rails/stripe/objects.ts";
import { Random } from "../../../lab/random.ts";
import { seed } from "../../support/seed.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { cardOf, expectTotals, historyOf, joinedBooks, play } from "./plays.ts";

const RUNS = shortOrSoak(60, 20_000);
const PLAYS = 30;

/** A network in memory that approves most requests. */
function networkOf(random: Random): CardNetwork {
  let now = 1_790_000_000_000;
  const network = new CardNetwork({
    id: "acct_1",
    store: new ObjectStore(null),
    now: () => (now += random.between(0, 1_500)),
    ask: () => Promise.resolve({ approved: random.chance(0.8), reason: "webhook_approved" }),
    onEvent: () => undefined,
  });
  network.configure({ authorizationUrl: "http://127.0.0.1/", amountFalls: random.chance(0.5) });
  return network;
}

const read = (network: CardNetwork, card: string) =>
  booksFrom({
    authorizations: historyOf.authorizations(network, card).map((found) => authorizationObject.parse(found)),
    transactions: historyOf.transactions(network, card).map((found) => transactionObject.parse(found)),
    disputes: historyOf.disputes(network, card).map((found) => disputeObject.parse(found)),
  });

/** Of an authorization that has ended, the authorized amount holds nothing. */
const held = (books: RailBooks) => (books.isOpen ? books : { ...books, authorizedMc: 0 });

describe("Stripe's objects as books", () => {
  it(`are the network's totals, in any order and number of reads (seed ${seed})`, async () => {
    for (let run = 0; run < RUNS; run += 1) {
      const random = new Random(seed).fork(String(run));
      const network = networkOf(random);
      const card = cardOf(network, 20_000);
      const reads = [];
      for (let at = 0; at < PLAYS; at += 1) {
        await play(network, card, random);
        reads.push(read(network, card));
      }
      const last = read(network, card);
      const some = [...reads, ...reads].filter(() => random.chance(0.5));
      const once = joinedBooks([last]);
      try {
        expectTotals(network, card, once);
        expectTotals(network, card, joinedBooks(random.shuffled([...some, last])));
        expectTotals(network, card, joinedBooks([...reads, last]));
        if (network.settings.amountFalls)
          expect(joinedBooks(random.shuffled([...some, last])).map(held)).to.deep.equal(once.map(held));
      } catch (error) {
        throw new Error(`run ${run}`, { cause: error });
      }
    }
  }).timeout(600_000);
});
