import type { Collection, Db } from "mongodb";

/** What an organization pays for; it decides the limits (management-api.md section 8). */
export const PLANS = ["free", "pro", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

/** What a person may do in the organization (decisions.md section 2). */
export const ROLES = ["owner", "admin", "member"] as const;
export type Role = (typeof ROLES)[number];

export interface OrganizationDocument {
  readonly _id: string;
  readonly name: string;
  readonly plan: Plan;
  /** An enterprise plan's custom limits per minute; null where the plan's own hold. */
  readonly restPerMinute: number | null;
  readonly mcpPerMinute: number | null;
  readonly status: "provisioning" | "ready";
  readonly defaultProjectId: string;
  readonly defaultTeamId: string;
  readonly createdAt: Date;
  readonly readyAt: Date | null;
  /** Who owns the wallets of agents that are created from now on, an address; missing: nobody has been named. */
  readonly walletOwner?: string;
  /** Counts changes of roles and removals: each of them writes it, so that two at once can't both look away. */
  readonly membersRevision?: number;
}

export interface UserDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly email: string;
  /** What e-mails are compared by; unique. */
  readonly emailNormalized: string;
  readonly role: Role;
  /** Argon2id, in the PHC string format. */
  readonly passwordHash: string;
  readonly createdAt: Date;
}

/** How a person proved who they are, in the terms of RFC 8176. */
export type AuthenticationMethod = "pwd" | "otp";

export interface SessionDocument {
  readonly _id: string;
  readonly userId: string;
  readonly organizationId: string;
  readonly amr: readonly AuthenticationMethod[];
  /** When the person signed in. Neither a refresh nor a step-up moves it. */
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** HMAC of the one refresh token that is good; each use puts another in its place. */
  readonly refreshHash: string;
  readonly refreshedAt: Date | null;
  readonly revokedAt: Date | null;
  readonly revokedBecause: "sign_out" | "refresh_reuse" | "member_removed" | null;
  readonly stepUpExpiresAt: Date | null;
}

/** One TOTP secret with its guards. Secrets are replaced whole, so an id stands for one secret for ever. */
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
  /** `steppedUp`: enrolled by a session that had stepped up, so that it may take a confirmed one's place. */
  readonly pending: (TotpSecret & { readonly steppedUp: boolean }) | null;
}

/** Every kind of second factor; a passkey's document joins the union, with a `kind` of its own. */
export type FactorDocument = TotpFactorDocument;
export type SecondFactorKind = FactorDocument["kind"];

/** An invite that is open: once accepted, withdrawn or replaced it is gone. */
export interface InviteDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly email: string;
  readonly emailNormalized: string;
  readonly role: Role;
  /** HMAC of the token, which itself is kept nowhere. */
  readonly tokenHash: string;
  /** Who need not be a member any more. */
  readonly createdBy: { readonly type: "user"; readonly id: string };
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface AuthCollections {
  readonly organizations: Collection<OrganizationDocument>;
  readonly users: Collection<UserDocument>;
  readonly sessions: Collection<SessionDocument>;
  readonly factors: Collection<FactorDocument>;
  readonly invites: Collection<InviteDocument>;
}

/** Read from the primary whatever the connection says: a sign-out or a changed role binds at once. */
export function authCollections(db: Db): AuthCollections {
  const options = { readPreference: "primary" } as const;
  return {
    organizations: db.collection<OrganizationDocument>("organizations", options),
    users: db.collection<UserDocument>("users", options),
    sessions: db.collection<SessionDocument>("sessions", options),
    factors: db.collection<FactorDocument>("factors", options),
    invites: db.collection<InviteDocument>("invites", options),
  };
}

/** The record of a dead session or an expired invite is kept for a day, then MongoDB removes it. */
const EXPIRED_KEPT_SECONDS = 86_400;

/** Creates the indexes that the rules of this folder rest on. Again is free. */
export async function ensureAuthIndexes(db: Db): Promise<void> {
  const { users, sessions, factors, invites } = authCollections(db);
  await Promise.all([
    users.createIndex({ emailNormalized: 1 }, { name: "email_unique", unique: true }),
    users.createIndex({ organizationId: 1, _id: 1 }, { name: "organization" }),
    users.createIndex({ organizationId: 1, createdAt: -1, _id: -1 }, { name: "members" }),
    sessions.createIndex({ userId: 1 }, { name: "user" }),
    sessions.createIndex({ expiresAt: 1 }, { name: "expiry", expireAfterSeconds: EXPIRED_KEPT_SECONDS }),
    factors.createIndex({ userId: 1 }, { name: "user" }),
    invites.createIndex({ tokenHash: 1 }, { name: "token_unique", unique: true }),
    invites.createIndex(
      { organizationId: 1, emailNormalized: 1 },
      { name: "one_open_per_email", unique: true },
    ),
    invites.createIndex({ organizationId: 1, createdAt: -1, _id: -1 }, { name: "open" }),
    invites.createIndex({ expiresAt: 1 }, { name: "expiry", expireAfterSeconds: EXPIRED_KEPT_SECONDS }),
  ]);
}
