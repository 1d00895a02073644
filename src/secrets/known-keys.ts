import type { Collection, Db } from "mongodb";

/** A master key that is or was the newest, by its id. */
export interface MasterKeyDocument {
  readonly _id: string;
  readonly since: Date;
  /** Time at which the key was retired; null as long as values sealed under it may exist. */
  readonly retiredAt: Date | null;
  /** Set some time before the retirement: from then on no process begins with the key. */
  readonly isRetiring?: boolean;
  /** Sub-keys that outlive the key, sealed under the newest; null before it is retired. */
  readonly kept: string | null;
}

export const MASTER_KEYS = "master_keys";

/** Read from the primary, regardless of the connection's preference, like the settings. */
export const knownKeys = (db: Db): Collection<MasterKeyDocument> =>
  db.collection<MasterKeyDocument>(MASTER_KEYS, { readPreference: "primary" });
