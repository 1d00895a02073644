import { expect } from "chai";
import type { CommandStartedEvent } from "mongodb";
import { collectionsOf } from "../../src/store/collections.ts";
import { connectMongo } from "../../src/store/connections.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";

describe("where records are read", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  it("every read is the primary's, whatever the URI says: what decides is never an old copy", async () => {
    const uri = new URL(process.env["TEST_MONGODB_URI"] ?? "");
    uri.pathname = database.db.databaseName;
    uri.searchParams.set("readPreference", "secondaryPreferred");
    uri.searchParams.set("monitorCommands", "true");
    const { db, mongo } = await connectMongo(uri.href);
    try {
      const asked: CommandStartedEvent[] = [];
      mongo.on("commandStarted", (event) => asked.push(event));
      const { agents, transactions } = collectionsOf(db);
      await transactions.findOne({ _id: "txn_1" });
      await agents.find({ teamId: "team" }).toArray();
      await agents.aggregate([{ $match: { teamId: "team" } }]).toArray();
      expect(asked.map(({ commandName }) => commandName)).to.deep.equal(["find", "find", "aggregate"]);
      for (const { command } of asked) {
        expect(command).to.not.have.nested.property("$readPreference.mode", "secondaryPreferred");
      }
      expect(mongo.options.readPreference.mode).to.equal("primary");
    } finally {
      await mongo.close();
    }
  });
});
