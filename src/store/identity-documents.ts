import type { Collection, Db } from "mongodb";
import type { Role } from "../contract/types.ts";
import type { Bound } from "../domain/binding.ts";
import type { WalletRecord } from "./documents.ts";
import type { InviteMail } from "./mail-documents.ts";
import type { OrganizationKeyDocument } from "./organization-key-documents.ts";

/** Plan that an organization pays for; it decides the limits. */
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
  /** An enterprise plan's custom limits per minute; null where the plan's own hold. */
  readonly restPerMinute: number | null;
  readonly mcpPerMinute: number | null;
  /** Its subscriptions by their ids at the billing provider; missing: no event of one has come. */
  readonly subscriptions?: Readonly<Record<string, SubscriptionState>>;
  readonly status: "provisioning" | "ready";
  readonly defaultProjectId: string;
  readonly defaultTeamId: string;
  readonly createdAt: Date;
  /** Whether the operator's command made it, to stay or to try things out, or the set-up link. */
  readonly createdBy?: "command" | "trial" | "set-up";
  /** Hash of the request that created it: while it is provisioning, the same request finds it and creates no other. */
  readonly creation: string;
  readonly readyAt: Date | null;
  /** Set if its chain in the audit log was begun with its creation. */
  readonly isAudited?: true;
  /** The address that owns the wallets of agents that are created from now on; missing: none is set. */
  readonly walletOwner?: string;
  /** IANA time zone of its people; missing: none is set. */
  readonly timezone?: string;
  /** Address that it is sent money at; missing until it has an owner, or if there is no chain. */
  readonly treasury?: WalletRecord | null;
  /** Counts changes of roles and removals: each of them writes it, so that two at once can't both look away. */
  readonly membersRevision?: number;
  /** Counts webhook endpoints that were made: each of them writes it, so that two at once can't both find the last place. */
  readonly webhooksRevision?: number;
  /** Set if its people can do nothing without a second factor. Each of its people's records says so, too. */
  readonly requireSecondFactor?: true;
}

export interface UserDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly email: string;
  /** Form in which e-mails are compared; unique in its organization. */
  readonly emailNormalized: string;
  /** Whether mail to it is known to reach them; else it is unverified. */
  readonly emailVerified: boolean;
  readonly role: Role;
  /** Containers that a member is bound to; null or missing: none, they act in the whole organization. */
  readonly binding?: Bound | null;
  /** Argon2id, in the PHC string format. */
  readonly passwordHash: string;
  readonly createdAt: Date;
  /** Counts changes of their second factors: each of them writes it, so that two at once can't both look away. */
  readonly factorsRevision?: number;
  /** Counts organization keys that they minted or rotated, so that one that is being made is in conflict with their removal. */
  readonly keysRevision?: number;
  /** Counts what ended all their sessions but for one; a session that was begun under an earlier count is over. Missing: 0. */
  readonly sessionsEpoch?: number;
  /** Copy of the organization's setting, where every request finds it. */
  readonly secondFactorRequired?: true;
  /** Likewise: unless they are an owner, they sign in by the organization's provider alone. */
  readonly ssoRequired?: true;
  /** Their identity at the organization's provider; an e-mail address is none. */
  readonly sso?: { readonly issuer: string; readonly subject: string };
  /** Set if they are mailed about payments on hold, where the service mails. */
  readonly approvalMails?: true;
  /** Their second factors in force; missing: none. A factor's own record counts only if it is one of these. */
  readonly secondFactors?: readonly HeldFactor[];
  /** MAC over what gives access (`AccessProofs`). */
  readonly proof: string;
}

/** A second factor in force, in its person's record. */
export type HeldFactor =
  /** The id is its secret's. */
  | { readonly kind: "totp"; readonly id: string }
  | { readonly kind: "passkey"; readonly id: string; readonly publicKey: string };

/**
 * Proof of identity that a person gave, in the terms of RFC 8176: a passkey is proof of a key, and two factors in
 * one. `sso`: the word of the organization's identity provider.
 */
export type AuthenticationMethod = "pwd" | "otp" | "pop" | "mfa" | "sso";

/** Why a session ended before its time; `ended`: by the person, from the list of their sessions. */
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
  /** Time of the sign-in. Neither a refresh nor a step-up moves it. */
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** HMAC of the one refresh token that is good; each use puts another in its place. */
  readonly refreshHash: string;
  /** HMAC of the token before it; null before the first refresh. */
  readonly previousRefreshHash: string | null;
  readonly refreshedAt: Date | null;
  /** Exact to a minute. */
  readonly lastSeenAt: Date;
  /** Name that the client gave itself at sign-in; bounded, and of plain characters alone. */
  readonly userAgent: string | null;
  /** Id of the provider's session that began it; missing: none. */
  readonly ssoSid?: string;
  /** The person's `sessionsEpoch` when their password was read, or since. */
  readonly epoch: number;
  readonly revokedAt: Date | null;
  readonly revokedBecause: SessionEnd | null;
  readonly stepUpExpiresAt: Date | null;
  /** MAC over what gives access (`AccessProofs`). */
  readonly proof: string;
}

/** TOTP secret with its guards. Secrets are replaced whole, so an id always means the same secret. */
export interface TotpSecret {
  readonly id: string;
  /** Sealed, bound to `id`. */
  readonly sealedSecret: string;
  readonly createdAt: Date;
  /** The newest time step whose code was accepted: that code and all older ones are used up. */
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

/** Secret that was not confirmed yet; only the session that it was given to can confirm it. */
export interface PendingTotpSecret extends TotpSecret {
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** Given to a session that had stepped up, so that it may take a confirmed one's place. */
  readonly steppedUp: boolean;
  /** MAC over what lets it be confirmed (`AccessProofs`). */
  readonly proof: string;
}

/** A passkey, in force from its enrolment on. Nothing in it is a secret: the private key never leaves its device. */
export interface PasskeyDocument {
  readonly _id: string;
  readonly userId: string;
  readonly kind: "passkey";
  readonly name: string;
  /** WebAuthn's id of it, base64url; one person's only. */
  readonly credentialId: string;
  /** The COSE key, base64url. */
  readonly publicKey: string;
  /** Counter of its last signature. Most synced passkeys say 0 each time. */
  readonly counter: number;
  /** Whether it may be synced, as its last signature said. */
  readonly backupEligible: boolean;
  readonly backedUp: boolean;
  readonly transports: readonly string[];
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  /**
   * Time at which it last signed as a copy would: with a counter that was not ahead, or as one that may be synced and
   * could not be before.
   */
  readonly suspectedCloneAt: Date | null;
}

/** Second factor of any kind. */
export type FactorDocument = TotpFactorDocument | PasskeyDocument;
export type SecondFactorKind = FactorDocument["kind"];

/** Purpose that a challenge was given out for; it is good for nothing else. */
export type PasskeyPurpose = "enrolment" | "sign_in" | "step_up";

/** A challenge that was given out and not come back yet, under its hash. */
export interface PasskeyChallengeDocument {
  readonly _id: string;
  readonly purpose: PasskeyPurpose;
  /** Null at sign-in, before the person is known. */
  readonly userId: string | null;
  readonly sessionId: string | null;
  /** Given to a session that had stepped up, so that the enrolment may add to a factor in force. */
  readonly steppedUp: boolean;
  readonly expiresAt: Date;
  /** MAC over what gives access (`AccessProofs`). */
  readonly proof: string;
}

/** An invite that is open: once accepted, withdrawn or replaced it is gone. */
export interface InviteDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly email: string;
  readonly emailNormalized: string;
  readonly role: Role;
  /** Containers that the member will be bound to; missing: none. */
  readonly binding?: Bound;
  /** HMAC of the token, which itself is not kept. */
  readonly tokenHash: string;
  /** Creator, who need not be a member any more. */
  readonly createdBy: { readonly type: "user"; readonly id: string };
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Null: it is not mailed, and its token was answered. Else the token is delivered only by mail. */
  readonly mail: InviteMail | null;
  /** Set until the workflow that mails it was started. */
  readonly mailStartPending?: true;
  /** MAC over what gives access (`AccessProofs`). */
  readonly proof: string;
}

/** Invites that were mailed in one window of time. */
export interface InviteCountDocument {
  readonly _id: string;
  readonly count: number;
  /** End of the window. */
  readonly expiresAt: Date;
}

/** Answer to a request for an invite with an idempotency key. */
export interface InviteRequestDocument {
  /** Hash of organization, person and key. */
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
  /** Collection of factors once more, for what only the one kind has or the other. */
  readonly totpFactors: Collection<TotpFactorDocument>;
  readonly passkeys: Collection<PasskeyDocument>;
  readonly passkeyChallenges: Collection<PasskeyChallengeDocument>;
  readonly invites: Collection<InviteDocument>;
  readonly inviteCounts: Collection<InviteCountDocument>;
  readonly inviteRequests: Collection<InviteRequestDocument>;
  /** Keys of people; they end with the member who minted them. */
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

/** Read from the primary whatever the connection says: a sign-out or a changed role binds at once. */
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
