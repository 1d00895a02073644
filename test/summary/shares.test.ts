import { expect } from "chai";
import { transactionSummaryHandlers } from "../../server/handlers/transaction-summary.ts";
import type { ContextOf } from "../../server/handlers/types.ts";
import { operations } from "../../src/contract/registry.ts";
import { BoundedWork, TooMuchWork } from "../../src/lib/bounded-work.ts";
import { collectionsOf, SERVER_INDEXES } from "../../src/store/collections.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { PROJECTION_INDEXES } from "../../src/store/projections.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { transactionOf } from "../support/payments-in-place.ts";
import { times } from "../support/world.ts";

type Context = ContextOf<(typeof operations.summarizeTransactions)["access"]>;

describe("sums of payments of several organizations at once", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
    await createIndexes(database.db, ...PROJECTION_INDEXES, SERVER_INDEXES);
  });
  after(() => database.close());

  it("an organization whose sums take long keeps no other waiting, and is refused alone", async () => {
    const collections = collectionsOf(database.db);
    const place = { agentId: "agt_1", projectId: "prj_1", teamId: "tem_1" };
    await collections.transactions.insertOne(transactionOf("org_quick", place));
    const share = { atOnceMax: 2, waitingMax: 1 };
    const reads = new BoundedWork({ atOnceMax: 4, waitingMax: 64, waitMs: 60_000, share });
    const { summarizeTransactions } = transactionSummaryHandlers({
      clock: () => new Date(),
      collections,
      reads,
    });
    const summarize = (organizationId: string) => {
      const principal = { organizationId } as Context["principal"];
      const context = { principal, target: { bindingFilter: {} } } as Context;
      const query = operations.summarizeTransactions.query.parse({});
      return summarizeTransactions({ params: {}, query, body: undefined }, context);
    };
    // What a long history's days take.
    const ends: (() => void)[] = [];
    const slow = () => new Promise<void>((resolve) => ends.push(resolve));
    const long = times(3, () => reads.run(slow, "org_slow"));
    const quick = await summarize("org_quick");
    expect(quick.ok && quick.value.body.days.map(({ amountCents }) => amountCents)).to.deep.equal([100]);
    const refused: unknown = await summarize("org_slow").catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(TooMuchWork);
    while (ends.length > 0) {
      ends.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(long);
  });
});
