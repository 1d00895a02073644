import { expect } from "chai";
import { MongoServers } from "../../src/store/servers.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { testDatabase } from "../support/mongo.ts";

describe("the list of servers that commands are forwarded to", () => {
  it("has none that something else than a server has written, or moved to another address", async () => {
    const { close, db } = await testDatabase();
    try {
      const servers = new MongoServers(db, TEST_ACCESS_PROOFS, "1");
      await servers.announce({ id: "own", url: "http://127.0.0.1:1" });
      await servers.announce({ id: "moved", url: "http://127.0.0.1:2" });
      const records = db.collection<{ _id: string }>("servers");
      await records.updateOne({ _id: "moved" }, { $set: { url: "http://127.0.0.1:3" } });
      const own = await records.findOne({ _id: "own" });
      await records.insertOne({ ...own, _id: "forged" });
      expect(await servers.live()).to.deep.equal([{ id: "own", url: "http://127.0.0.1:1" }]);
    } finally {
      await close();
    }
  });
});
