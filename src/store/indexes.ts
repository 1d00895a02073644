import type { Db, IndexDescription } from "mongodb";
import pLimit from "p-limit";

/** Indexes by the name of their collection. */
export type Indexes = Readonly<Record<string, readonly IndexDescription[]>>;

/** Each connection is authenticated first, which takes longer than most of these commands. */
const COMMANDS_AT_ONCE = 4;

/** Creates indexes, all of a collection in one command, which makes the collection too. Waits until they are built; idempotent. */
export async function createIndexes(db: Db, ...declared: readonly Indexes[]): Promise<void> {
  const ofCollection = new Map<string, IndexDescription[]>();
  for (const [collection, indexes] of declared.flatMap((each) => Object.entries(each)))
    ofCollection.set(collection, [...(ofCollection.get(collection) ?? []), ...indexes]);
  await pLimit(COMMANDS_AT_ONCE).map(ofCollection, ([collection, indexes]) =>
    db.collection(collection).createIndexes(indexes),
  );
}
