import type { Db } from "mongodb";
import { AUTH_COLLECTIONS } from "./identity-documents.ts";
import { SSO_INDEXES } from "./sso-documents.ts";
import { createIndexes, type Indexes } from "./indexes.ts";
import { newestFirst } from "./newest-first.ts";

/** Time after which MongoDB removes a dead session or an expired invite: a day. */
const EXPIRED_RETENTION_SECONDS = 86_400;

/** Margin before MongoDB removes an expired challenge. The service's clock decides on expiry; MongoDB's may differ. */
const EXPIRED_CHALLENGE_RETENTION_SECONDS = 600;

/** Retention of responses to requests for invites: a day. */
const ANSWER_RETENTION_SECONDS = 86_400;

const expiry = (expireAfterSeconds: number) => ({
  key: { expiresAt: 1 },
  name: "expiry",
  expireAfterSeconds,
  reader: "removes what has expired",
});

/** Indexes that the accounts' guarantees rest on. A query by organization alone uses the prefix of one of them. */
export const AUTH_INDEXES: Indexes = {
  ...SSO_INDEXES,
  [AUTH_COLLECTIONS.organizations]: [
    {
      key: { creation: 1 },
      name: "one_under_way",
      reader: "one organization is provisioned for a creation",
      unique: true,
      partialFilterExpression: { status: "provisioning", creation: { $exists: true } },
    },
  ],
  [AUTH_COLLECTIONS.users]: [
    {
      key: { organizationId: 1, emailNormalized: 1 },
      name: "one_per_email_and_organization",
      unique: true,
      reader: "an address is one person of an organization",
    },
    {
      key: { emailNormalized: 1, emailVerified: -1, createdAt: 1, _id: 1 },
      name: "accounts_of_email",
      reader: "sign-in, which knows no organization",
    },
    {
      key: { organizationId: 1, "sso.issuer": 1, "sso.subject": 1 },
      name: "one_per_identity",
      unique: true,
      reader: "single sign-on, by the provider's subject",
      partialFilterExpression: { "sso.subject": { $gt: "" } },
    },
    {
      key: { organizationId: 1, createdAt: -1, _id: -1 },
      name: "members",
      reader: "the list of members; the owner who came first, and how many there are",
    },
    {
      key: { organizationId: 1, approvalMails: 1, _id: 1 },
      name: "mailed_about_approvals",
      reader: "addressees of mails about approvals",
      partialFilterExpression: { approvalMails: true },
    },
  ],
  [AUTH_COLLECTIONS.sessions]: [
    { key: { userId: 1 }, name: "user", reader: "sessions that a change of password or a departure ends" },
    {
      key: { ssoSid: 1 },
      name: "sso_session",
      partialFilterExpression: { ssoSid: { $gt: "" } },
      reader: "sessions that the identity provider ends",
    },
    expiry(EXPIRED_RETENTION_SECONDS),
  ],
  [AUTH_COLLECTIONS.factors]: [
    { key: newestFirst(["userId"]), name: "newest", reader: "a person's factors" },
    {
      key: { credentialId: 1 },
      name: "credential_unique",
      reader: "a passkey is one person's; sign-in by it",
      unique: true,
      partialFilterExpression: { credentialId: { $exists: true } },
    },
  ],
  [AUTH_COLLECTIONS.passkeyChallenges]: [expiry(EXPIRED_CHALLENGE_RETENTION_SECONDS)],
  [AUTH_COLLECTIONS.invites]: [
    { key: { tokenHash: 1 }, name: "token_unique", unique: true, reader: "the link of an invite" },
    {
      key: { organizationId: 1, emailNormalized: 1 },
      name: "one_open_per_email",
      unique: true,
      reader: "an address has one open invite of an organization",
    },
    { key: { organizationId: 1, createdAt: -1, _id: -1 }, name: "open", reader: "the list of invites" },
    expiry(EXPIRED_RETENTION_SECONDS),
    {
      key: { mailStartPending: 1 },
      name: "mail_start_pending",
      reader: "the sweep of mails that nobody has started",
      partialFilterExpression: { mailStartPending: true },
    },
  ],
  [AUTH_COLLECTIONS.inviteCounts]: [expiry(EXPIRED_RETENTION_SECONDS)],
  [AUTH_COLLECTIONS.inviteRequests]: [
    {
      key: { createdAt: 1 },
      name: "kept",
      expireAfterSeconds: ANSWER_RETENTION_SECONDS,
      reader: "removes answers that nobody repeats any more",
    },
  ],
};

const indexed = new WeakMap<Db, Promise<void>>();

/** Creates the indexes of `AUTH_INDEXES`, once per connection. Idempotent. */
export async function ensureAuthIndexes(db: Db): Promise<void> {
  const creating = indexed.get(db) ?? createIndexes(db, AUTH_INDEXES);
  indexed.set(db, creating);
  try {
    await creating;
  } catch (error) {
    indexed.delete(db);
    throw error;
  }
}
