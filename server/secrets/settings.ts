import type { Collection, OptionalUnlessRequiredId, WithId } from "mongodb";
import { isDuplicateKey } from "./duplicate-key.ts";

/**
 * Writes a record that is made once for the whole service, or reads the one that is there. Of two servers that start
 * at once on an empty database, both get the record of whichever was first.
 */
export async function insertOrRead<T extends { readonly _id: string }>(
  collection: Collection<T>,
  record: OptionalUnlessRequiredId<T> & T,
): Promise<T | WithId<T>> {
  try {
    await collection.insertOne(record);
    return record;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
  const stored = await collection.findOne({ _id: { $eq: record._id } } as never);
  if (stored === null) throw new Error(`The setting ${record._id} disappeared while it was read.`);
  return stored;
}
