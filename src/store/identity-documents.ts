import type { Collection, Db } from "mongodb";
import type { Role } from "../contract/types.ts";
import type { Bound } from "../domain/binding.ts";
import type { WalletRecord } from "./documents.ts";
import type { InviteMail } from "./mail-documents.ts";
import type { OrganizationKeyDocument } from "./organization-key-documents.ts";

/** Plan that an organization pays for; determines its limits. */
export const PLANS = ["free", "pro", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

/** A subscription by its newest event: the plan that it pays for, `free` once it is over. */
export interface SubscriptionState {
  readonly plan: Plan;
  readonly at: Date;
}

export interface OrganizationDocument {
  readonly _id: string;
  readonly name: string;
  readonly plan: Plan;
  /** Custom limit per minute of an enterprise plan; null to use the plan's own. */
  readonly restPerMinute: number | null;
  readonly mcpPerMinute: number | null;
  /** Its subscriptions by their ids at the billing provider; missing: no event of one has come. */
  readonly subscriptions?: Readonly<Record<string, SubscriptionState>>;
  readonly status: "provisioning" | "ready";
  readonly defaultProjectId: string;
  readonly defaultTeamId: string;
  readonly createdAt: Date;
  /** Origin: the operator's command, a trial started by that command, or the set-up link. */
  readonly createdBy?: "command" | "trial" | "set-up";
  /** Hash of the creating request. While provisioning, the same request finds this organization again. */
  readonly creation: string;
  readonly readyAt: Date | null;
  /** Set if the organization's audit chain began with its creation. */
  readonly isAudited?: true;
  /** Address that owns the wallets of agents created from now on; missing if none is set. */
  readonly walletOwner?: string;
  /** MAC over the owner (`AccessProofs`). */
  readonly walletOwnerProof?: string;
  /** IANA time zone of the organization's members; missing if none is set. */
  readonly timezone?: string;
  /** Wallet that receives the organization's deposits; missing until there is an owner, or without a chain. */
  readonly treasury?: WalletRecord | null;
  /** MAC over the treasury (`AccessProofs`). */
  readonly treasuryProof?: string;
  /** Counter that every change of roles and every removal writes, so that concurrent ones conflict. */
  readonly membersRevision?: number;
  /** Counter that every new webhook endpoint writes, so that concurrent ones can't both take the last place. */
  readonly webhooksRevision?: number;
  /** Set if members need a second factor. Copied into each member's record. */
  readonly requireSecondFactor?: true;
}

export interface UserDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly email: string;
  /** Form in which e-mail addresses are compared; unique in the organization. */
  readonly emailNormalized: string;
  /** Whether the address is verified: mail sent to it is known to arrive. */
  readonly emailVerified: boolean;
  readonly role: Role;
  /** Containers that the member is bound to; null or missing if the member acts in the whole organization. */
  readonly binding?: Bound | null;
  /** Argon2id hash in the PHC string format. */
  readonly passwordHash: string;
  readonly createdAt: Date;
  /** Counter that every change of the user's second factors writes, so that concurrent ones conflict. */
  readonly factorsRevision?: number;
  /** Counter that every mint or rotation of an organization key writes, to conflict with the user's removal. */
  readonly keysRevision?: number;
  /** Counter raised when all but one of the user's sessions end; sessions of a lower count are over. Missing: 0. */
  readonly sessionsEpoch?: number;
  /** Copy of the organization's setting, since every request reads the user's record. */
  readonly secondFactorRequired?: true;
  /** Copy of the organization's setting: the user signs in only through the identity provider, unless an owner. */
  readonly ssoRequired?: true;
  /** Identity at the organization's provider; an e-mail address is not one. */
  readonly sso?: { readonly issuer: string; readonly subject: string };
  /** Set if the user is mailed about held payments; without effect if the service sends no mail. */
  readonly approvalMails?: true;
  /** Second factors in force; missing if none. A factor's own record counts only if listed here. */
  readonly secondFactors?: readonly HeldFactor[];
  /** MAC over the fields that give access (`AccessProofs`). */
  readonly proof: string;
}

/** A second factor in force, as listed in its user's record. */
export type HeldFactor =
  /** `id` is the secret's. */
  | { readonly kind: "totp"; readonly id: string }
  | { readonly kind: "passkey"; readonly id: string; readonly publicKey: string };

/**
 * A proof of identity, in the terms of RFC 8176. A passkey counts as `pop` and as `mfa`. `sso` is the statement of the
 * organization's identity provider.
 */
export type AuthenticationMethod = "pwd" | "otp" | "pop" | "mfa" | "sso";

/** Why a session ended early. `ended`: by its user, from the list of sessions. */
export type SessionEnd =
  | "sign_out"
  | "refresh_reuse"
  | "member_removed"
  | "factors_reset"
  | "ended"
  | "password_changed"
  | "password_reset"
  | "sso_logout";

export interface SessionDocument {
  readonly _id: string;
  readonly userId: string;
  readonly organizationId: string;
  readonly amr: readonly AuthenticationMethod[];
  /** Time of the sign-in; neither a refresh nor a step-up changes it. */
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** HMAC of the one valid refresh token; each use replaces it. */
  readonly refreshHash: string;
  /** HMAC of the preceding token; null before the first refresh. */
  readonly previousRefreshHash: string | null;
  readonly refreshedAt: Date | null;
  /** Exact to a minute. */
  readonly lastSeenAt: Date;
  /** Name that the client gave at sign-in; bounded, printable characters only. */
  readonly userAgent: string | null;
  /** Id of the identity provider's session that began this one; missing if none. */
  readonly ssoSid?: string;
  /** The user's `sessionsEpoch` when the password was read, or later. */
  readonly epoch: number;
  readonly revokedAt: Date | null;
  readonly revokedBecause: SessionEnd | null;
  readonly stepUpExpiresAt: Date | null;
  /** MAC over what gives access (`AccessProofs`). */
  readonly proof: string;
}

/** TOTP secret with guards against guessing and reuse. Replaced as a whole, so an id means one secret. */
export interface TotpSecret {
  readonly id: string;
  /** Sealed, bound to `id`. */
  readonly sealedSecret: string;
  readonly createdAt: Date;
  /** Newest time step whose code was accepted; that code and all older ones are used up. */
  readonly lastUsedStep: number;
  readonly wrongCodes: number;
  readonly lockedUntil: Date | null;
}

/** A user's TOTP, under `totp:<user id>`. The confirmed secret stays in force until a pending one is confirmed. */
export interface TotpFactorDocument {
  readonly _id: string;
  readonly userId: string;
  readonly kind: "totp";
  readonly confirmed: TotpSecret | null;
  readonly pending: PendingTotpSecret | null;
}

/** An unconfirmed secret; only the session that received it can confirm it. */
export interface PendingTotpSecret extends TotpSecret {
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** Whether the session had stepped up, so that the secret may replace a confirmed one. */
  readonly steppedUp: boolean;
  /** MAC over the fields that allow a confirmation (`AccessProofs`). */
  readonly proof: string;
}

/** A passkey, in force from its enrolment on. Holds no secret: the private key never leaves its device. */
export interface PasskeyDocument {
  readonly _id: string;
  readonly userId: string;
  readonly kind: "passkey";
  readonly name: string;
  /** WebAuthn credential id, base64url; belongs to one user only. */
  readonly credentialId: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  /** Counter of the last signature; 0 each time for most synced passkeys. */
  readonly counter: number;
  /** Whether the passkey may be synced, according to its last signature. */
  readonly backupEligible: boolean;
  readonly backedUp: boolean;
  readonly transports: readonly string[];
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  /** Last sign of a clone: the counter did not advance, or a passkey that could not be synced claims it can. */
  readonly suspectedCloneAt: Date | null;
}

export type FactorDocument = TotpFactorDocument | PasskeyDocument;
export type SecondFactorKind = FactorDocument["kind"];

/** Purpose of a challenge; it is valid for no other. */
export type PasskeyPurpose = "enrolment" | "sign_in" | "step_up";

/** An issued challenge that has not been answered yet, under its hash. */
export interface PasskeyChallengeDocument {
  readonly _id: string;
  readonly purpose: PasskeyPurpose;
  /** Null at sign-in, before the user is known. */
  readonly userId: string | null;
  readonly sessionId: string | null;
  /** Whether the session had stepped up, so that the enrolment may add to a factor in force. */
  readonly steppedUp: boolean;
  readonly expiresAt: Date;
  /** MAC over the fields that give access (`AccessProofs`). */
  readonly proof: string;
}

/** An open invite; accepted, withdrawn and replaced invites are deleted. */
export interface InviteDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly email: string;
  readonly emailNormalized: string;
  readonly role: Role;
  /** Containers that the member will be bound to; missing if none. */
  readonly binding?: Bound;
  /** HMAC of the token; the token itself is not stored. */
  readonly tokenHash: string;
  /** Creator, possibly no longer a member. */
  readonly createdBy: { readonly type: "user"; readonly id: string };
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /**
   * Null if the invite is not mailed and its token was in the response; otherwise the token is delivered only by mail.
   */
  readonly mail: InviteMail | null;
  /** Set until the workflow that mails the invite is started. */
  readonly mailStartPending?: true;
  /** MAC over the fields that give access (`AccessProofs`). */
  readonly proof: string;
}

export interface InviteCountDocument {
  readonly _id: string;
  readonly count: number;
  /** End of the window. */
  readonly expiresAt: Date;
}

/** Response to a request for an invite with an idempotency key. */
export interface InviteRequestDocument {
  /** Hash of organization, user and key. */
  readonly _id: string;
  readonly payloadHash: string;
  /** Sealed, since it may hold an invite's token; bound to `_id`. */
  readonly sealedAnswer: string;
  readonly createdAt: Date;
}

export interface AuthCollections {
  readonly organizations: Collection<OrganizationDocument>;
  readonly users: Collection<UserDocument>;
  readonly sessions: Collection<SessionDocument>;
  readonly factors: Collection<FactorDocument>;
  /** The collection of factors, typed by kind. */
  readonly totpFactors: Collection<TotpFactorDocument>;
  readonly passkeys: Collection<PasskeyDocument>;
  readonly passkeyChallenges: Collection<PasskeyChallengeDocument>;
  readonly invites: Collection<InviteDocument>;
  readonly inviteCounts: Collection<InviteCountDocument>;
  readonly inviteRequests: Collection<InviteRequestDocument>;
  /** Keys of users; they end with the member who minted them. */
  readonly organizationKeys: Collection<OrganizationKeyDocument>;
}

export const AUTH_COLLECTIONS = {
  organizations: "organizations",
  users: "users",
  sessions: "sessions",
  factors: "factors",
  passkeyChallenges: "passkey_challenges",
  invites: "invites",
  inviteCounts: "invite_counts",
  inviteRequests: "invite_requests",
  organizationKeys: "organization_keys",
} as const;

/** Returns collections read from the primary whatever the connection says: a sign-out binds at once. */
export function authCollections(db: Db): AuthCollections {
  const options = { readPreference: "primary" } as const;
  return {
    organizations: db.collection<OrganizationDocument>(AUTH_COLLECTIONS.organizations, options),
    users: db.collection<UserDocument>(AUTH_COLLECTIONS.users, options),
    sessions: db.collection<SessionDocument>(AUTH_COLLECTIONS.sessions, options),
    factors: db.collection<FactorDocument>(AUTH_COLLECTIONS.factors, options),
    totpFactors: db.collection<TotpFactorDocument>(AUTH_COLLECTIONS.factors, options),
    passkeys: db.collection<PasskeyDocument>(AUTH_COLLECTIONS.factors, options),
    passkeyChallenges: db.collection<PasskeyChallengeDocument>(AUTH_COLLECTIONS.passkeyChallenges, options),
    invites: db.collection<InviteDocument>(AUTH_COLLECTIONS.invites, options),
    inviteCounts: db.collection<InviteCountDocument>(AUTH_COLLECTIONS.inviteCounts, options),
    inviteRequests: db.collection<InviteRequestDocument>(AUTH_COLLECTIONS.inviteRequests, options),
    organizationKeys: db.collection<OrganizationKeyDocument>(AUTH_COLLECTIONS.organizationKeys, options),
  };
}
