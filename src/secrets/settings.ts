import type { Collection, Db } from "mongodb";
import { isDuplicateKey } from "../lib/duplicate-key.ts";

/** A value created once for the whole service and stored in MongoDB: never a secret, unless sealed. */
export interface SettingDocument {
  readonly _id: string;
  readonly value: string;
  readonly createdAt: Date;
}

/** Read from the primary, regardless of the connection's preference: servers that start at once must see the same. */
export const settingsOf = (db: Db): Collection<SettingDocument> =>
  db.collection<SettingDocument>("settings", { readPreference: "primary" });

/** Reads a setting, or writes a missing one. Servers that start at once all get the one written first. */
export async function readOrCreateSetting(
  db: Db,
  id: string,
  create: () => Omit<SettingDocument, "_id">,
): Promise<SettingDocument> {
  const settings = settingsOf(db);
  const found = await settings.findOne({ _id: id });
  if (found !== null) return found;
  try {
    const created = { _id: id, ...create() };
    await settings.insertOne(created, { writeConcern: { w: "majority" } });
    return created;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
  const first = await settings.findOne({ _id: id });
  if (first === null) throw new Error(`The setting ${id} disappeared while it was read.`);
  return first;
}
