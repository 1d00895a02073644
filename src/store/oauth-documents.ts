import type { Collection, Db } from "mongodb";
import type { Indexes } from "./indexes.ts";

/** A record of the OAuth protocol: a grant, a code, a token or a registered client. */
export interface OAuthDocument {
  /** MAC of the record's kind and its id or token; the database holds neither. */
  readonly _id: string;
  /** Grant that the record ends with; null if none. */
  readonly grantId: string | null;
  /** The agent's key that the record is for; null if none. */
  readonly keyId: string | null;
  readonly sealed: string;
  /** Time of the first use of a single-use record; null if unused. */
  readonly consumedAt: Date | null;
  readonly expiresAt: Date;
}

export const OAUTH_RECORDS = "oauth_records";

/**
 * Returns the collection, read from the primary whatever the connection says: a revoked record is dead on its next use.
 */
export const oauthRecordsOf = (db: Db): Collection<OAuthDocument> =>
  db.collection<OAuthDocument>(OAUTH_RECORDS, { readPreference: "primary" });

export const OAUTH_INDEXES: Indexes = {
  [OAUTH_RECORDS]: [
    {
      key: { grantId: 1 },
      name: "grant",
      partialFilterExpression: { grantId: { $gt: "" } },
      reader: "records of a grant that is revoked",
    },
    {
      key: { keyId: 1 },
      name: "key",
      partialFilterExpression: { keyId: { $gt: "" } },
      reader: "records of an agent's key that is revoked",
    },
    { key: { expiresAt: 1 }, name: "expiry", expireAfterSeconds: 0, reader: "removes what has expired" },
  ],
};
