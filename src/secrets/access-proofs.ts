import type { RaiseRequestDocument } from "../store/raise-documents.ts";
import { valueAt } from "../lib/value-at.ts";
import {
  type AgentDocument,
  COLLECTIONS,
  type EventDocument,
  type ProjectDocument,
  type TeamDocument,
} from "../store/documents.ts";
import {
  AUTH_COLLECTIONS,
  type InviteDocument,
  type OrganizationDocument,
  type PasskeyChallengeDocument,
  type SessionDocument,
  type UserDocument,
} from "../store/identity-documents.ts";
import type { OrganizationKeyDocument } from "../store/organization-key-documents.ts";
import { SSO, type SsoDocument } from "../store/sso-documents.ts";
import { SERVERS, type ServerDocument } from "../store/servers.ts";
import {
  type DeliveryDocument,
  type EndpointDocument,
  WEBHOOK_COLLECTIONS,
} from "../store/webhook-documents.ts";
import type { ChainTransactionDocument } from "../chain/recorded.ts";
import type { IssuedDocument } from "../rails/card/places.ts";
import type { AuthorizationDocument } from "../rails/pocket/authorizations.ts";
import type { KeyedMacs } from "./keyed-macs.ts";

const RULES_FIELDS = ["_id", "approvalRules.version", "approvalRules.contentHash"];
const RESTRICTIONS = {
  path: "restrictions.proof",
  fields: ["_id", "restrictions.version", "restrictions.contentHash"],
};

/**
 * Records that decide rights, or on whose behalf the service speaks: each kind's collection, the path of its proof, and
 * the fields covered by the proof. Fields that only end something, such as `revokedAt`, are excluded: a MAC does not
 * prevent a record from being replaced by an older version of itself.
 */
export const ACCESS_RECORDS = {
  user: {
    what: "people's records",
    collection: AUTH_COLLECTIONS.users,
    path: "proof",
    fields: [
      "_id",
      "organizationId",
      "name",
      "email",
      "emailNormalized",
      "role",
      "binding",
      "passwordHash",
      "secondFactors",
      "secondFactorRequired",
      "ssoRequired",
      "sso",
      "sessionsEpoch",
    ] satisfies readonly (keyof UserDocument)[],
  },
  session: {
    what: "sessions' records",
    collection: AUTH_COLLECTIONS.sessions,
    path: "proof",
    fields: [
      "_id",
      "userId",
      "organizationId",
      "amr",
      "createdAt",
      "expiresAt",
      "epoch",
      "stepUpExpiresAt",
    ] satisfies readonly (keyof SessionDocument)[],
  },
  totpEnrolment: {
    what: "enrolments of TOTP",
    collection: AUTH_COLLECTIONS.factors,
    path: "pending.proof",
    fields: ["_id", "pending.id", "pending.sessionId", "pending.expiresAt", "pending.steppedUp"],
  },
  passkeyChallenge: {
    what: "challenges of passkeys",
    collection: AUTH_COLLECTIONS.passkeyChallenges,
    path: "proof",
    fields: [
      "_id",
      "purpose",
      "userId",
      "sessionId",
      "steppedUp",
      "expiresAt",
    ] satisfies readonly (keyof PasskeyChallengeDocument)[],
  },
  organizationKey: {
    what: "organization keys' records",
    collection: AUTH_COLLECTIONS.organizationKeys,
    path: "proof",
    fields: [
      "_id",
      "organizationId",
      "hash",
      "scopes",
      "binding",
      "dailyCreateLimit",
      "lineageId",
      "createdBy",
      "createdAt",
    ] satisfies readonly (keyof OrganizationKeyDocument)[],
  },
  invite: {
    what: "invites' records",
    collection: AUTH_COLLECTIONS.invites,
    path: "proof",
    fields: [
      "_id",
      "organizationId",
      "email",
      "emailNormalized",
      "role",
      "binding",
      "tokenHash",
      "createdBy",
      "expiresAt",
    ] satisfies readonly (keyof InviteDocument)[],
  },
  sso: {
    what: "identity providers' records",
    collection: SSO,
    path: "proof",
    fields: [
      "_id",
      "issuer",
      "clientId",
      "sealedSecret",
      "domains",
      "required",
      "jitRole",
    ] satisfies readonly (keyof SsoDocument)[],
  },
  walletOwner: {
    what: "owners of wallets",
    collection: AUTH_COLLECTIONS.organizations,
    path: "walletOwnerProof",
    fields: ["_id", "walletOwner"] satisfies readonly (keyof OrganizationDocument)[],
  },
  treasury: {
    what: "treasuries",
    collection: AUTH_COLLECTIONS.organizations,
    path: "treasuryProof",
    fields: ["_id", "treasury"] satisfies readonly (keyof OrganizationDocument)[],
  },
  project: {
    what: "projects' records",
    collection: COLLECTIONS.projects,
    path: "proof",
    fields: ["_id", "organizationId"] satisfies readonly (keyof ProjectDocument)[],
  },
  team: {
    what: "teams' records",
    collection: COLLECTIONS.teams,
    path: "proof",
    fields: ["_id", "organizationId", "projectId"] satisfies readonly (keyof TeamDocument)[],
  },
  projectCap: {
    what: "projects' caps",
    collection: COLLECTIONS.projects,
    path: "capProof",
    fields: ["_id", "cap"] satisfies readonly (keyof ProjectDocument)[],
  },
  teamCap: {
    what: "teams' caps",
    collection: COLLECTIONS.teams,
    path: "capProof",
    fields: ["_id", "cap"] satisfies readonly (keyof TeamDocument)[],
  },
  projectCalendar: {
    what: "projects' calendars",
    collection: COLLECTIONS.projects,
    path: "calendarProof",
    fields: ["_id", "calendar"] satisfies readonly (keyof ProjectDocument)[],
  },
  /** Decided by the ledger, which reads it only when it is restored from the records. */
  agentAccount: {
    what: "agents' policies",
    collection: COLLECTIONS.agents,
    path: "accountProof",
    fields: [
      "_id",
      "policy",
      "policyVersion",
      "accountRevision",
      "accountStatus",
    ] satisfies readonly (keyof AgentDocument)[],
  },
  projectRules: {
    what: "projects' approval rules",
    collection: COLLECTIONS.projects,
    path: "approvalRules.proof",
    fields: RULES_FIELDS,
  },
  teamRules: {
    what: "teams' approval rules",
    collection: COLLECTIONS.teams,
    path: "approvalRules.proof",
    fields: RULES_FIELDS,
  },
  projectRestrictions: {
    what: "projects' restrictions",
    collection: COLLECTIONS.projects,
    ...RESTRICTIONS,
  },
  teamRestrictions: { what: "teams' restrictions", collection: COLLECTIONS.teams, ...RESTRICTIONS },
  agentRestrictions: {
    what: "agents' restrictions",
    collection: COLLECTIONS.agentRestrictions,
    ...RESTRICTIONS,
  },
  /** A secret is sealed to its id, so the id represents the secret. */
  webhook: {
    what: "webhook endpoints",
    collection: WEBHOOK_COLLECTIONS.endpoints,
    path: "proof",
    fields: [
      ...([
        "_id",
        "organizationId",
        "url",
        "eventTypes",
        "scopeType",
        "scopeIds",
        "isActive",
      ] satisfies readonly (keyof EndpointDocument)[]),
      "secret.id",
      "previousSecret.id",
      "previousSecret.expiresAt",
    ],
  },
  event: {
    what: "events",
    collection: COLLECTIONS.events,
    path: "proof",
    fields: [
      "_id",
      "type",
      "organizationId",
      "projectId",
      "teamId",
      "agentId",
      "agentName",
      "createdAt",
      "data",
    ] satisfies readonly (keyof EventDocument)[],
  },
  delivery: {
    what: "webhook deliveries",
    collection: WEBHOOK_COLLECTIONS.deliveries,
    path: "proof",
    fields: [
      "_id",
      "organizationId",
      "endpointId",
      "eventId",
      "eventType",
      "isTest",
      "body",
    ] satisfies readonly (keyof DeliveryDocument)[],
  },
  issuedCard: {
    what: "cards at issuers",
    collection: COLLECTIONS.sandboxCardLedger,
    path: "proof",
    fields: [
      "_id",
      "transactionId",
      "organizationOfCard",
      "connectionId",
      "cardRef",
      "last4",
      "readyUntil",
      "categories",
      "refusal",
      "closedAt",
      "createdAt",
    ] satisfies readonly (keyof IssuedDocument)[],
  },
  /** A fence has no proof: it decides nothing. */
  chainTransaction: {
    what: "chain transactions",
    collection: COLLECTIONS.chainTransactions,
    path: "proof",
    fields: [
      "_id",
      "chain",
      "from",
      "nonce",
      "hash",
      "raw",
      "raised",
      "replacedBy",
      "noop",
      "isRepeated",
      "wallet",
      "amountCents",
      "limitVersion",
      "refusal",
      "createdAt",
    ] satisfies readonly (keyof ChainTransactionDocument)[],
  },
  pocketAuthorization: {
    what: "pockets' authorizations",
    collection: COLLECTIONS.pocketAuthorizations,
    path: "proof",
    fields: [
      "_id",
      "agentId",
      "from",
      "chain",
      "nonce",
      "to",
      "units",
      "validAfter",
      "validBefore",
      "signedAtBlock",
      "signature",
      "createdAt",
    ] satisfies readonly (keyof AuthorizationDocument)[],
  },
  purchaseRefusal: {
    what: "refusals of purchases",
    collection: COLLECTIONS.purchases,
    path: "refusalProof",
    fields: ["_id", "refusal"],
  },
  raiseRequest: {
    what: "raise requests",
    collection: COLLECTIONS.raiseRequests,
    path: "proof",
    fields: [
      "_id",
      "organizationId",
      "projectId",
      "teamId",
      "agentId",
      "amountCents",
      "reason",
      "status",
      "decision",
      "resolvedBy",
      "feedback",
    ] satisfies readonly (keyof RaiseRequestDocument)[],
  },
  server: {
    what: "servers' records",
    collection: SERVERS,
    path: "proof",
    fields: ["_id", "url", "version"] satisfies readonly (keyof ServerDocument)[],
  },
} as const;

export type AccessKind = keyof typeof ACCESS_RECORDS;
export const ACCESS_KINDS: readonly AccessKind[] = [
  "user",
  "session",
  "totpEnrolment",
  "passkeyChallenge",
  "organizationKey",
  "invite",
  "sso",
  "walletOwner",
  "treasury",
  "project",
  "team",
  "projectCap",
  "teamCap",
  "projectCalendar",
  "agentAccount",
  "projectRules",
  "teamRules",
  "projectRestrictions",
  "teamRestrictions",
  "agentRestrictions",
  "webhook",
  "event",
  "delivery",
  "issuedCard",
  "chainTransaction",
  "pocketAuthorization",
  "purchaseRefusal",
  "raiseRequest",
  "server",
];

interface Stored {
  readonly _id: string;
}

/** Called for each record that was read for a decision and whose proof is invalid. */
export type OnForgedRecord = (kind: AccessKind | "agent" | "oauth", id: string) => void;

/**
 * MACs over the fields by which records decide rights: a change made only in MongoDB is detected. Every write of such a
 * field gets its proof here, and every decision based on one checks it here first.
 */
export class AccessProofs {
  readonly #macs: KeyedMacs;
  readonly #onForged: OnForgedRecord;

  constructor(macs: KeyedMacs, onForged: OnForgedRecord = () => undefined) {
    this.#macs = macs;
    this.#onForged = onForged;
  }

  make(kind: AccessKind, record: Stored): string {
    return this.#macs.make(factsOf(kind, record));
  }

  /** Returns a new record with its proof. */
  proven<T extends Stored>(kind: AccessKind, record: T): T & { readonly proof: string } {
    return { ...record, proof: this.make(kind, record) };
  }

  /** Returns the change of a genuine record, including the record's new proof. */
  changed<C extends object>(kind: AccessKind, record: Stored, change: C): C & { readonly proof: string } {
    return { ...change, proof: this.make(kind, { ...record, ...change }) };
  }

  isGenuine(kind: AccessKind, record: Stored): boolean {
    return this.#macs.isMac(factsOf(kind, record), valueAt(record, ACCESS_RECORDS[kind].path));
  }

  /** Returns the record if genuine; null if it is missing, or was changed by something other than the service. */
  genuine<T extends Stored>(kind: AccessKind, record: T | null): T | null {
    if (record === null || this.isGenuine(kind, record)) return record;
    this.#onForged(kind, record._id);
    return null;
  }
}

function factsOf(kind: AccessKind, record: Stored): string {
  const values = ACCESS_RECORDS[kind].fields.map((path) => valueAt(record, path) ?? null);
  // MongoDB keeps the order of fields.
  return JSON.stringify([kind, ...values]);
}
