import type { Collection, Db } from "mongodb";
import type { Indexes } from "./indexes.ts";

/** An organization's identity provider, under the organization's id. */
export interface SsoDocument {
  readonly _id: string;
  readonly issuer: string;
  readonly clientId: string;
  /** Sealed, bound to the organization. */
  readonly sealedSecret: string;
  /** E-mail domains that sign in here, in lower case; each is one organization's only. */
  readonly domains: readonly string[];
  /** Whether members, but owners, sign in here and nowhere else. */
  readonly required: boolean;
  /** Role of a person who is made a member by the first sign-in; null: nobody is. */
  readonly jitRole: "member" | "auditor" | null;
  readonly updatedAt: Date;
  /** MAC over what gives access (`AccessProofs`). */
  readonly proof: string;
}

export const SSO = "sso";

/** Read from the primary whatever the connection says: a changed provider counts at once. */
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
