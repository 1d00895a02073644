import { expect } from "chai";
import type { Collection } from "mongodb";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { PaymentChanges } from "../../src/payments/payment-changes.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times } from "../support/world.ts";

/** Much longer than any change takes to be told; a test that waits for it to pass would fail by mocha's own bound. */
const LONG_MS = 60_000;

describe("changes of payments", () => {
  let database: TestDatabase;
  let transactions: Collection<TransactionDocument>;
  let changes: PaymentChanges;
  let errors: unknown[];
  beforeEach(async () => {
    database = await testDatabase();
    transactions = database.db.collection("transactions");
    errors = [];
    changes = new PaymentChanges(transactions, (error) => errors.push(error));
  });
  afterEach(async () => {
    await changes.end();
    await database.close();
  });

  const write = (id: string, revision: number) =>
    transactions.updateOne({ _id: id }, { $set: { revision } }, { upsert: true });

  /** Ends the stream on the server, as a failover would. */
  async function breakStream(): Promise<void> {
    const admin = database.db.client.db("admin");
    const pipeline = [
      { $currentOp: { idleCursors: true, allUsers: true } },
      { $match: { ns: `${database.db.databaseName}.transactions`, "cursor.tailable": true } },
    ];
    const found = await admin.aggregate(pipeline).toArray();
    const cursors = found.map(({ cursor }) => cursor.cursorId);
    expect(cursors).not.to.deep.equal([]);
    await database.db.command({ killCursors: "transactions", cursors });
  }

  it("a change between the watch and the wait is not missed", async () => {
    await write("txn_1", 1);
    const watch = await changes.watch("txn_1");
    await write("txn_1", 2);
    await watch.changed(LONG_MS);
    watch.end();
  });

  it("each waits for their own payment, and all who wait for one are woken", async () => {
    await Promise.all(times(50, (index) => write(`txn_${index}`, 1)));
    const watches = await Promise.all(
      times(
        50,
        async (index) => [await changes.watch(`txn_${index}`), await changes.watch("txn_0")] as const,
      ),
    );
    const woken: number[] = [];
    const own = watches.map(async ([watch], index) => {
      await watch.changed(LONG_MS);
      woken.push(index);
    });
    const first = watches.map(([, watch]) => watch.changed(LONG_MS));
    await write("txn_0", 2);
    await Promise.all(first);
    await own[0];
    expect(woken).to.deep.equal([0]);
    await Promise.all(times(50, (index) => write(`txn_${index}`, 3)));
    await Promise.all(own);
    for (const each of watches.flat()) each.end();
  });

  it("a new record wakes no caller, and the time that was given is kept", async () => {
    const watch = await changes.watch("txn_1");
    await write("txn_1", 1);
    const began = performance.now();
    await watch.changed(300);
    expect(performance.now() - began).to.be.at.least(295);
    watch.end();
  });

  it("a stream that breaks is opened again, and waiting callers look for themselves meanwhile", async () => {
    await write("txn_1", 1);
    const watch = await changes.watch("txn_1");
    const woken = watch.changed(LONG_MS);
    // The stream has begun once it has told of something.
    const other = await changes.watch("txn_2");
    await write("txn_2", 1);
    await write("txn_2", 2);
    await other.changed(LONG_MS);
    other.end();
    await breakStream();
    await write("txn_1", 2);
    await woken;
    const again = watch.changed(LONG_MS);
    await write("txn_1", 3);
    await again;
    watch.end();
  });

  it("a process that ends lets no caller wait", async () => {
    const watch = await changes.watch("txn_1");
    const waiting = watch.changed(LONG_MS);
    await changes.end();
    await waiting;
    expect(changes.isOver).to.equal(true);
    await watch.changed(LONG_MS);
    const late = await changes.watch("txn_2");
    await late.changed(LONG_MS);
  });

  it("while there is no stream, waiting callers are woken again and again to look", async () => {
    const gone = await testDatabase();
    await gone.close();
    const without = new PaymentChanges(gone.db.collection("transactions"), (error) => errors.push(error));
    const watch = await without.watch("txn_1");
    for (const _look of [1, 2]) await watch.changed(LONG_MS);
    expect(errors.length).to.be.at.least(2);
    watch.end();
    await without.end();
  });
});
