import type { Db, Document, Filter } from "mongodb";
import { COLLECTIONS } from "../store/documents.ts";
import { AUTH_COLLECTIONS } from "../store/identity-documents.ts";
import { WEBHOOK_COLLECTIONS } from "../store/webhook-documents.ts";
import { SSO } from "../store/sso-documents.ts";
import { OAUTH_RECORDS } from "../store/oauth-documents.ts";
import { ACCESS_RECORDS } from "./access-proofs.ts";
import { madeUnder } from "./keyed-macs.ts";
import { MASTER_KEYS } from "./known-keys.ts";
import type { StoredPurpose } from "./sealer.ts";

/** A field whose values begin with the id of their master key. */
export interface Place {
  /** Plural noun for messages. */
  readonly what: string;
  readonly collection: string;
  readonly path: string;
}

export interface SealedPlace extends Place {
  readonly purpose: StoredPurpose;
  /** Paths whose values, joined by a slash, identify the record to which the sealed value is bound. */
  readonly boundTo: readonly string[];
}

const totp = (slot: "confirmed" | "pending"): SealedPlace => ({
  what: "TOTP secrets",
  collection: AUTH_COLLECTIONS.factors,
  path: `${slot}.sealedSecret`,
  purpose: "totp-secret",
  boundTo: ["userId", `${slot}.id`],
});

const webhook = (field: "secret" | "previousSecret"): SealedPlace => ({
  what: "webhook secrets",
  collection: WEBHOOK_COLLECTIONS.endpoints,
  path: `${field}.sealed`,
  purpose: "webhook-secret",
  boundTo: [`${field}.id`],
});

const byPurpose: Readonly<Record<StoredPurpose, readonly SealedPlace[]>> = {
  "session-signing-key": [
    {
      what: "session signing keys",
      collection: "settings",
      path: "value",
      purpose: "session-signing-key",
      boundTo: ["_id"],
    },
  ],
  "totp-secret": [totp("confirmed"), totp("pending")],
  "webhook-secret": [webhook("secret"), webhook("previousSecret")],
  "invite-link": [
    {
      what: "links of invites",
      collection: AUTH_COLLECTIONS.invites,
      path: "mail.sealedLink",
      purpose: "invite-link",
      boundTo: ["_id"],
    },
  ],
  "invite-answer": [
    {
      what: "answers to invites' creates",
      collection: AUTH_COLLECTIONS.inviteRequests,
      path: "sealedAnswer",
      purpose: "invite-answer",
      boundTo: ["_id"],
    },
  ],
  "card-issuer": [
    {
      what: "keys of card issuers",
      collection: COLLECTIONS.cardConnections,
      path: "sealed",
      purpose: "card-issuer",
      boundTo: ["organizationId", "_id"],
    },
  ],
  "sso-secret": [
    {
      what: "secrets of identity providers",
      collection: SSO,
      path: "sealedSecret",
      purpose: "sso-secret",
      boundTo: ["_id"],
    },
  ],
  "kept-keys": [
    {
      what: "sub-keys of retired master keys",
      collection: MASTER_KEYS,
      path: "kept",
      purpose: "kept-keys",
      boundTo: ["_id"],
    },
  ],
};

export const SEALED_PLACES: readonly SealedPlace[] = Object.values(byPurpose).flat();

/** MACs over agents' records, which the service can renew. */
export const AGENT_PROOFS: readonly [Place, Place] = [
  { what: "agents' records", collection: COLLECTIONS.agents, path: "proof" },
  { what: "proofs of agents' keys", collection: COLLECTIONS.agents, path: "key.proof" },
];

/** Places of all MACs over records that the service can renew. */
const PROOFS: readonly Place[] = [...AGENT_PROOFS, ...Object.values(ACCESS_RECORDS)];

/** Values that move on from an older master key only at their holder's next use, or when they expire. */
const heldPlaces = (now: Date): readonly (Place & { readonly filter: Filter<Document> })[] => [
  {
    what: "agents' keys",
    collection: COLLECTIONS.agents,
    path: "key.hash",
    filter: { lifecycle: { $ne: "archived" } },
  },
  {
    what: "organization keys",
    collection: AUTH_COLLECTIONS.organizationKeys,
    path: "hash",
    filter: { rotatedAt: null, revokedAt: null },
  },
  {
    what: "sessions",
    collection: AUTH_COLLECTIONS.sessions,
    path: "refreshHash",
    filter: { revokedAt: null, expiresAt: { $gt: now } },
  },
  {
    what: "open invites",
    collection: AUTH_COLLECTIONS.invites,
    path: "tokenHash",
    filter: { expiresAt: { $gt: now } },
  },
  {
    what: "first keys that may be delivered again",
    collection: COLLECTIONS.keyDeliveries,
    path: "sealed",
    filter: { state: "open" },
  },
  {
    what: "connections by OAuth",
    collection: OAUTH_RECORDS,
    path: "_id",
    filter: { expiresAt: { $gt: now } },
  },
  { what: "purchases in progress", collection: COLLECTIONS.purchases, path: "sealed", filter: {} },
  {
    what: "paid answers of the last hour",
    collection: COLLECTIONS.purchaseAnswers,
    path: "sealed",
    filter: {},
  },
  {
    what: "payments in progress",
    collection: COLLECTIONS.transactions,
    path: "ledgerState.proof",
    filter: { "ledgerState.phase": { $ne: "done" } },
  },
];

/** Numbers of values that need a master key, keyed by plural noun. */
export type Needs = Readonly<Record<string, number>>;

export async function needsOf(db: Db, keyId: string, now: Date): Promise<Needs> {
  const places = [...SEALED_PLACES, ...PROOFS].map((each) => ({ ...each, filter: {} }));
  const needs: Record<string, number> = {};
  for (const { collection, filter, path, what } of [...places, ...heldPlaces(now)]) {
    const found = await db
      .collection(collection, { readPreference: "primary" })
      .countDocuments({ ...filter, [path]: madeUnder(keyId) });
    if (found > 0) needs[what] = (needs[what] ?? 0) + found;
  }
  return needs;
}

/** Describes needs: `3 webhook secrets and 1 sessions`. */
export const namesOf = (needs: Needs): string =>
  Object.entries(needs)
    .map(([what, count]) => `${String(count)} ${what}`)
    .join(", ");
