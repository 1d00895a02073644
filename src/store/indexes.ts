import type { Db, IndexDescription } from "mongodb";
import pLimit from "p-limit";

/**
 * An index and its reason: each index costs every write to its collection. A partial one is used by queries that imply its
 * filter: MongoDB sees that in an equality with a text for `$gt: ""`, and not for `$type: "string"`.
 */
export interface Index extends IndexDescription {
  /** Query that reads the index, guarantee that it enforces, or records that MongoDB removes by it. */
  readonly reader: string;
}

export type Indexes = Readonly<Record<string, readonly Index[]>>;

/**
 * Maximum commands in flight. Each connection is authenticated first, which takes longer than most of these commands.
 */
const COMMANDS_AT_ONCE = 4;

/**
 * Returns the names of declared indexes that are missing or differ from their declaration. Without a unique index a key
 * is accepted twice; a list read through a partial index omits what the index omits.
 */
export async function alteredIndexes(db: Db, collection: string, declared: Indexes): Promise<string[]> {
  const found = (await db.listCollections({ name: collection }).hasNext())
    ? await db.collection(collection).indexes()
    : [];
  const there = new Set(found.map(definition));
  return (declared[collection] ?? [])
    .filter((index) => !there.has(definition(index)))
    .map(({ name = "" }) => name);
}

/** Returns the part of an index that decides on its content and order. */
const definition = ({ collation, key, partialFilterExpression, sparse, unique }: IndexDescription): string =>
  JSON.stringify([key, unique ?? false, sparse ?? false, partialFilterExpression ?? null, collation ?? null]);

/** Creates indexes and their collections, one command per collection. Waits until they are built; idempotent. */
export async function createIndexes(db: Db, ...declared: readonly Indexes[]): Promise<void> {
  const ofCollection = new Map<string, IndexDescription[]>();
  for (const [collection, indexes] of declared.flatMap((each) => Object.entries(each))) {
    const descriptions = indexes.map(({ reader: _reader, ...description }) => description);
    ofCollection.set(collection, [...(ofCollection.get(collection) ?? []), ...descriptions]);
  }
  await pLimit(COMMANDS_AT_ONCE).map(ofCollection, ([collection, indexes]) =>
    db.collection(collection).createIndexes(indexes),
  );
}
