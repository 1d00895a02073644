import { expect } from "chai";
import type { Db, Document, IndexDescriptionInfo } from "mongodb";
import { sharedService } from "../support/service.ts";

/** A query for the index's fields, as its readers ask: an equality where the filter admits one. */
function queryFor({ key, partialFilterExpression: filter = {} }: IndexDescriptionInfo): Document {
  const fields = [...Object.keys(key), ...Object.keys(filter)].filter((field) => field !== "_id");
  return Object.fromEntries(fields.map((field) => [field, valueFor(filter[field])]));
}

function valueFor(condition: unknown): unknown {
  if (typeof condition !== "object" || condition === null) return condition ?? "any";
  if ("$gte" in condition) return 1;
  if ("$gt" in condition && condition.$gt instanceof Date) return { $gte: new Date() };
  // Readers of times say the type themselves.
  return "$type" in condition && condition.$type === "date" ? condition : "any";
}

async function readers(db: Db, collection: string, index: IndexDescriptionInfo): Promise<string> {
  const cursor = db.collection(collection).find(queryFor(index));
  const explained = index.collation === undefined ? cursor : cursor.collation(index.collation);
  return JSON.stringify((await explained.explain("queryPlanner"))["queryPlanner"]);
}

describe("partial indexes", () => {
  it("each is used by queries for its fields, so that none reads a whole collection", async () => {
    const { db } = await sharedService();
    const unread: string[] = [];
    let looked = 0;
    for (const { name } of await db.listCollections().toArray())
      for (const index of await db.collection(name).indexes()) {
        if (index["partialFilterExpression"] === undefined) continue;
        looked += 1;
        const plans = await readers(db, name, index);
        if (!plans.includes(`"indexName":"${String(index.name)}"`))
          unread.push(`${name} ${String(index.name)}`);
      }
    expect(looked).to.be.greaterThan(10);
    expect(unread).to.deep.equal([]);
  });
});
