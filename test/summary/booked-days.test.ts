import { expect } from "chai";
import { transactionSummaryHandlers } from "../../server/handlers/transaction-summary.ts";
import type { ContextOf } from "../../server/handlers/types.ts";
import { operations } from "../../src/contract/registry.ts";
import { capturedInFull, type RailBooks } from "../../src/domain/ledger/books.ts";
import { mcOf } from "../../src/domain/money.ts";
import { BoundedWork } from "../../src/lib/bounded-work.ts";
import { collectionsOf, SERVER_INDEXES } from "../../src/store/collections.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { PROJECTION_INDEXES } from "../../src/store/projections.ts";
import { transactionDocument } from "../../src/store/payment-records.ts";
import { TestAccount } from "../domain/support/account.ts";
import { DAY, NOON, profile, SECOND } from "../domain/support/actor.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";

type Context = ContextOf<(typeof operations.summarizeTransactions)["access"]>;

const clock = () => new Date(NOON + 5 * DAY);

/** Changes of the books in cents, and how many days after the payment. */
type Reports = readonly (readonly [
  days: number,
  books: Partial<Record<keyof RailBooks, number | boolean>>,
])[];

describe("sums by day count what a network did when it was booked", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
    await createIndexes(database.db, ...PROJECTION_INDEXES, SERVER_INDEXES);
  });
  after(() => database.close());

  /** Pays 10.00 and has the network report; the days of the sums, oldest first. */
  async function daysOf(organizationId: string, reports: Reports, query: object = {}) {
    const account = new TestAccount();
    let payment = account.pay(1_000);
    for (const [days, change] of reports) {
      account.now = NOON + days * DAY + SECOND;
      const inMc = Object.entries(change).map(([name, value]) => [
        name,
        typeof value === "number" ? mcOf(value) : value,
      ]);
      const books = [{ ...capturedInFull(payment.request.amountMc), ...Object.fromEntries(inMc) }];
      const closed = payment.phase === "done" ? { closed: payment } : {};
      const { transactionId } = payment.request;
      const recordsCheckedThrough = account.state.closed;
      account.do({ kind: "book", transactionId, books, recordsCheckedThrough, ...closed });
      payment = account.payment(transactionId);
    }
    const collections = collectionsOf(database.db);
    const record = transactionDocument({ ...profile, agentId: organizationId, organizationId }, payment);
    await collections.transactions.insertOne({ ...record, _id: `${organizationId}_1` });
    const share = { atOnceMax: 2, waitingMax: 8 };
    const reads = new BoundedWork({ atOnceMax: 4, waitingMax: 64, waitMs: 60_000, share });
    const { summarizeTransactions } = transactionSummaryHandlers({ clock, collections, reads });
    const principal = { organizationId } as Context["principal"];
    const context = { principal, target: { bindingFilter: {} } } as Context;
    const asked = operations.summarizeTransactions.query.parse({ status: "spent", ...query });
    const answer = await summarizeTransactions({ params: {}, query: asked, body: undefined }, context);
    if (!answer.ok) throw new Error("the sums were refused");
    const first = Math.floor(NOON / DAY);
    return answer.value.body.days
      .map(({ amountCents, count, day }) => [Date.parse(day) / DAY - first, count, amountCents])
      .toReversed();
  }

  it("a refund lowers the day on which it was booked, not the payment's own", async () => {
    const reports: Reports = [
      [0, {}],
      [1, { creditedMc: 250 }],
      [3, { creditedMc: 1_000 }],
    ];
    expect(await daysOf("refunded", reports)).to.deep.equal([
      [0, 1, 1_000],
      [1, 0, -250],
      [3, 0, -750],
    ]);
  });

  it("late captures count on their days, and what was never captured on none", async () => {
    const reports: Reports = [
      [0, { capturedMc: 0, isOpen: true }],
      [2, { capturedMc: 400, isOpen: true }],
      [4, { capturedMc: 700, isOpen: false }],
    ];
    expect(await daysOf("captured_late", reports)).to.deep.equal([
      [0, 1, 0],
      [2, 0, 400],
      [4, 0, 300],
    ]);
  });

  it("what is booked within a minute counts at once, without a further field", async () => {
    expect(await daysOf("at_once", [[0, {}]])).to.deep.equal([[0, 1, 1_000]]);
    const [record] = await database.db
      .collection("transactions")
      .find({ organizationId: "at_once" })
      .toArray();
    expect(record).not.to.have.property("moved");
  });

  it("a range has only what was booked in it, also of payments from before it", async () => {
    const from = new Date(NOON + DAY).toISOString();
    const reports: Reports = [
      [0, {}],
      [2, { creditedMc: 100 }],
    ];
    expect(await daysOf("in_range", reports, { from })).to.deep.equal([[2, 0, -100]]);
  });
});
