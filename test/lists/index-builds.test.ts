import { expect } from "chai";
import type { Db } from "mongodb";
import { connectMongo, withoutTimeLimits } from "../../src/store/connections.ts";
import { requiredSetting } from "../support/shared-engines.ts";

/** Longer than one operation of a request may take, as the building of an index can be. */
const LONG_MS = 3_300;

/** An operation that takes MongoDB so long. */
const longOperation = async (db: Db): Promise<number> => {
  const records = db.collection<{ readonly _id: string }>("long_operations");
  await records.updateOne({ _id: "one" }, { $set: {} }, { upsert: true });
  return (await records.find({ $where: `sleep(${String(LONG_MS)}) || true` }).toArray()).length;
};

/** A start builds the indexes of collections of any size; a request is answered in time, whatever MongoDB does. */
describe("operations of MongoDB that take longer than a request may", () => {
  it("a start waits for them to end, and a request does not", async () => {
    const uri = requiredSetting("TEST_MONGODB_URI");
    const { db, mongo } = await connectMongo(uri);
    try {
      const [ofStart, ofRequest] = await Promise.allSettled([
        withoutTimeLimits(uri, longOperation),
        longOperation(db),
      ]);
      expect(ofStart).to.deep.equal({ status: "fulfilled", value: 1 });
      expect(ofRequest).to.have.property("status", "rejected");
    } finally {
      await mongo.close();
    }
  });
});
