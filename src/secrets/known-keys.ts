import type { Collection, Db } from "mongodb";

/** A master key that has been the newest, by its id. */
export interface MasterKeyDocument {
  readonly _id: string;
  readonly since: Date;
  /** Time at which it was given up; null: values sealed under it may still be there. */
  readonly retiredAt: Date | null;
  /** Sub-keys that outlive it, sealed under the newest; null before it is retired. */
  readonly kept: string | null;
}

export const MASTER_KEYS = "master_keys";

/** Read from the primary whatever the connection says, as the settings are. */
export const knownKeys = (db: Db): Collection<MasterKeyDocument> =>
  db.collection<MasterKeyDocument>(MASTER_KEYS, { readPreference: "primary" });
