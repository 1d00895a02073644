import { MongoClient } from "mongodb";

/**
 * The databases of a file's own services. They are dropped when the file is done: what MongoDB does for each new collection takes
 * the longer the more there are, three times as long by the end of a run. What was written is still in its oplog, which is
 * searched for secrets.
 */
const finished = new Set<string>();

/** A database that is dropped with the file that runs now. */
export const dropAfterFile = (uri: string): void => void finished.add(uri);

export async function dropFinishedDatabases(): Promise<void> {
  const uris = [...finished];
  finished.clear();
  const [first] = uris;
  if (first === undefined) return;
  const client = new MongoClient(first);
  try {
    for (const uri of uris) await client.db(new URL(uri).pathname.slice(1)).dropDatabase();
  } finally {
    await client.close();
  }
}
