import { expect } from "chai";
import { Bookings } from "../../src/payments/bookings.ts";
import type { ChangedPayment, LedgerGateway, RailNetwork, Rails } from "../../src/payments/ports.ts";
import { NOON, MINUTE, profile } from "./support/actor.ts";
import { TestAccount } from "./support/account.ts";

const changedAt = (minutes: number): Date => new Date(NOON + minutes * MINUTE);

describe("the watch over a network", () => {
  it("reads again what it found before its payment was recorded", async () => {
    const { request } = new TestAccount().paid(100);
    const changes: readonly ChangedPayment[] = [
      { transactionId: request.transactionId, changedAt: changedAt(1) },
      { transactionId: "txn_unrecorded", changedAt: changedAt(2) },
      { transactionId: request.transactionId, changedAt: changedAt(60) },
    ];
    const network: RailNetwork = {
      booksOf: () => Promise.resolve([]),
      async *changedSince() {
        yield* changes;
      },
    };
    const unasked = () => Promise.reject(new Error("nothing is to be booked"));
    const ledgers: LedgerGateway = { submit: unasked };
    const payment = new TestAccount().paid(100);
    const failed: string[] = [];
    const bookings = new Bookings({
      effects: { recordAndPublish: unasked },
      ledgers,
      projections: {
        closedAgent: unasked,
        paymentOf: (id) => Promise.resolve(id === request.transactionId ? { profile, payment } : null),
      },
      rails: { card: { network }, wallet: { network: null } } as Partial<Rails> as Rails,
    });
    const readThrough = await bookings.bookSince("card", changedAt(0), (id) => failed.push(id));
    expect(readThrough).to.deep.equal(changedAt(1));
    expect(failed).to.deep.equal(["txn_unrecorded"]);
  });
});
