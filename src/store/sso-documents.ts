import type { Collection, Db } from "mongodb";
import type { Indexes } from "./indexes.ts";

/** An organization's identity provider, under the organization's id. */
export interface SsoDocument {
  readonly _id: string;
  readonly issuer: string;
  readonly clientId: string;
  /** Sealed, bound to the organization. */
  readonly sealedSecret: string;
  /** E-mail domains whose members sign in here, in lower case; each belongs to one organization only. */
  readonly domains: readonly string[];
  /** Whether members other than owners must sign in here. */
  readonly required: boolean;
  /** Role of a user whom the first sign-in makes a member; null if sign-ins create no members. */
  readonly jitRole: "member" | "auditor" | null;
  readonly updatedAt: Date;
  /** MAC over the fields that give access (`AccessProofs`). */
  readonly proof: string;
}

export const SSO = "sso";

/** Returns the collection, read from the primary whatever the connection says: a changed provider counts at once. */
export const ssoOf = (db: Db): Collection<SsoDocument> =>
  db.collection<SsoDocument>(SSO, { readPreference: "primary" });

export const SSO_INDEXES: Indexes = {
  [SSO]: [
    {
      key: { domains: 1 },
      name: "one_per_domain",
      unique: true,
      reader: "a domain is one organization's; sign-in by address",
    },
    {
      key: { issuer: 1, clientId: 1 },
      name: "one_per_client",
      unique: true,
      reader: "a provider's client is one organization's",
    },
  ],
};
