import type { Db, IndexDescription } from "mongodb";
import pLimit from "p-limit";

/** Index with its reason: each costs every write of its collection. */
export interface Index extends IndexDescription {
  /** The query that reads it, the rule that it keeps, or what MongoDB removes by it. */
  readonly reader: string;
}

/** Indexes by the name of their collection. */
export type Indexes = Readonly<Record<string, readonly Index[]>>;

/** Commands at once. Each connection is authenticated first, which takes longer than most of these commands. */
const COMMANDS_AT_ONCE = 4;

/**
 * Names of declared indexes that are not there as declared: a missing unique one lets a key in twice, and a list through one that
 * leaves documents out leaves them out, too.
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

/** Part of an index that decides what is in it, and in which order. */
const definition = ({ collation, key, partialFilterExpression, sparse, unique }: IndexDescription): string =>
  JSON.stringify([key, unique ?? false, sparse ?? false, partialFilterExpression ?? null, collation ?? null]);

/** Creates indexes, all of a collection in one command, which makes the collection too. Waits until they are built; idempotent. */
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
