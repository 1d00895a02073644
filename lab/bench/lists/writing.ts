import type { Db, MongoClient } from "mongodb";
import { createIndexes } from "../../../src/store/indexes.ts";
import { PROJECTION_INDEXES } from "../../../src/store/projections.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { median } from "../statistics.ts";
import { transactionRecord } from "./seed.ts";

/**
 * Time of a write of a transaction's record, acknowledged by the journal, with and without the indexes of the lists.
 */
export interface WritingResult {
  readonly indexes: { readonly all: number; readonly withoutLists: number };
  readonly insertMicroseconds: { readonly all: number; readonly withoutLists: number };
  /** A record from pending to approved, by which it moves within the indexes that have the status. */
  readonly settleMicroseconds: { readonly all: number; readonly withoutLists: number };
}

const ROUNDS = 40;
const AT_ONCE = 250;
const MICROSECONDS = 1_000;

/** The two take turns, so that what slows one slows the other. */
export async function measureWriting(
  mongo: MongoClient,
  onProgress: (line: string) => void,
): Promise<WritingResult> {
  const sites = { all: mongo.db("bench_indexes_all"), withoutLists: mongo.db("bench_indexes_without") };
  await Promise.all(Object.values(sites).map((db) => createIndexes(db, ...PROJECTION_INDEXES)));
  await dropListIndexes(sites.withoutLists);
  const insert = { all: new Array<number>(), withoutLists: new Array<number>() };
  const settle = { all: new Array<number>(), withoutLists: new Array<number>() };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of ["all", "withoutLists"] as const) {
      const { inserted, settled } = await writeOnce(sites[name], round);
      insert[name].push(inserted);
      settle[name].push(settled);
    }
  }
  const result = {
    indexes: { all: await indexesOf(sites.all), withoutLists: await indexesOf(sites.withoutLists) },
    insertMicroseconds: { all: median(insert.all), withoutLists: median(insert.withoutLists) },
    settleMicroseconds: { all: median(settle.all), withoutLists: median(settle.withoutLists) },
  };
  onProgress(`lists · a record is inserted in ${result.insertMicroseconds.all.toFixed(0)} µs`);
  await Promise.all(Object.values(sites).map((db) => db.dropDatabase()));
  return result;
}

const indexesOf = async (db: Db): Promise<number> => (await collectionsOf(db).transactions.indexes()).length;

const isOfLists = (key: object): boolean => {
  const fields = Object.keys(key);
  return fields.at(-1) === "_id" && fields.at(-2) === "createdAt";
};

/** Drops the indexes of lists. */
async function dropListIndexes(db: Db): Promise<void> {
  const { transactions } = collectionsOf(db);
  for (const { key, name } of await transactions.indexes()) {
    if (isOfLists(key) && name !== undefined) await transactions.dropIndex(name);
  }
}

const place = (agent: number) => ({
  _id: `agent-${String(agent)}`,
  projectId: `project-${String(agent % 4)}`,
  teamId: `team-${String(agent % 20)}`,
});

async function writeOnce(
  db: Db,
  round: number,
): Promise<{ readonly inserted: number; readonly settled: number }> {
  const { transactions } = collectionsOf(db);
  const now = new Date();
  const records = Array.from({ length: AT_ONCE }, (_each, index) => ({
    ...transactionRecord("organization", place(index), round * AT_ONCE + index, now, Math.random),
    status: "pending" as const,
  }));
  const startedAt = performance.now();
  await transactions.insertMany(records);
  const insertedAt = performance.now();
  await transactions.bulkWrite(
    records.map(({ _id, ...record }) => ({
      replaceOne: { filter: { _id }, replacement: { ...record, status: "approved" as const, revision: 2 } },
    })),
  );
  const each = (ms: number) => (ms * MICROSECONDS) / AT_ONCE;
  return { inserted: each(insertedAt - startedAt), settled: each(performance.now() - insertedAt) };
}
