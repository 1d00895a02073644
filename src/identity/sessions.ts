import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { changed, type NoteAffected, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type {
  AuthenticationMethod,
  OrganizationDocument,
  SessionDocument,
  UserDocument,
} from "../store/identity-documents.ts";
import { hasFactor } from "./factors.ts";
import { newUuid } from "./ids.ts";
import type { PasskeyChange } from "./passkey-use.ts";
import { epochOf, isBehindSso, type SessionPrincipal } from "./session-principal.ts";
import { SESSION_TOKEN_LIFETIME_SECONDS, type SessionTokenSubject } from "./session-token.ts";
import {
  factorEnrolment,
  type FactorEnrolment,
  organizationView,
  type OrganizationView,
  userView,
  type UserView,
} from "./views.ts";

/** Lifetime of a session from the sign-in, regardless of refreshes. */
const SESSION_LIFETIME_MILLISECONDS = 30 * 24 * 3600 * 1000;

/** Lifetime of a session if the organization requires its identity provider: people return there twice a day. */
const SSO_SESSION_MS = 12 * 3600 * 1000;

/**
 * Time during which a used refresh token gets the tokens of its use again. Covers two pages that refresh at once, and a
 * client that lost the answer, waited 20 seconds for it as the dashboard does, and tries again.
 */
const REFRESH_REPLAY_MS = 30 * 1000;

/** Precision of `lastSeenAt`. */
const LAST_SEEN_PRECISION_MS = 60 * 1000;

export interface SessionTokensIssued {
  readonly token: string;
  readonly refreshToken: string;
  /** Token by which the account recognizes the device; null unless a user has just signed in. */
  readonly deviceToken: string | null;
  /** Expiry of `token`. */
  readonly expiresAt: string;
  /** End of the session and its refresh token, regardless of refreshes. */
  readonly sessionEndsAt: Date;
  /** Owner of the session. Never part of an answer. */
  readonly of: SessionOwner;
}

export interface SessionOwner {
  readonly sessionId: string;
  readonly userId: string;
  readonly organizationId: string;
  readonly name: string;
}

export interface SignedIn extends SessionTokensIssued {
  readonly user: UserView;
  readonly organization: OrganizationView;
  readonly secondFactorEnrolment: FactorEnrolment;
}

export interface Person {
  readonly user: UserDocument;
  readonly organization: OrganizationDocument;
}

interface LiveSession extends Person {
  readonly session: SessionDocument;
}

const ignoreAffected: NoteAffected = () => undefined;
const unauthorized = () => refused(refusal("UNAUTHORIZED"));

/** A new session, and its refresh token for the client. */
export interface OpenedSession extends LiveSession {
  readonly refreshToken: string;
}

/**
 * Starts a session for a person who has proved their identity. The session is not elevated. `person` must be as read
 * for that proof: if the password has changed since, the session is already over.
 */
export async function openSession(
  context: WritingContext,
  person: Person,
  amr: readonly AuthenticationMethod[],
  now: Date,
  userAgent: string | null = null,
  change: PasskeyChange | null = null,
): Promise<SignedIn> {
  const opened = newSession(context, person, amr, now, userAgent);
  await context.transaction(async (session) => {
    await context.collections.sessions.insertOne(opened.session, { session });
    return changed(null, { by: ownerOf(opened), ...change });
  });
  return await shownOnce(context, opened, now);
}

/** Returns the owner of a session, as named in its answer and its audit entry. */
export const ownerOf = ({ organization, session, user }: LiveSession): SessionOwner => ({
  sessionId: session._id,
  userId: user._id,
  organizationId: organization._id,
  name: user.name,
});

/** Returns the tokens of a session that has just begun. */
export async function shownOnce(
  context: AuthContext,
  { refreshToken, ...live }: OpenedSession,
  now: Date,
): Promise<SignedIn> {
  const signed = await signedIn(context, live, refreshToken, now);
  return { ...signed, deviceToken: context.deviceTokens.issue(live.user._id, now) };
}

/** Returns a session that is not written yet. */
export function newSession(
  context: AuthContext,
  person: Person,
  amr: readonly AuthenticationMethod[],
  now: Date,
  userAgent: string | null = null,
  ssoSid: string | null = null,
): OpenedSession {
  const sessionId = newUuid(now, context.randomBytes);
  const refresh = context.refreshTokens.issue(sessionId);
  const lifetimeMs = person.user.ssoRequired === true ? SSO_SESSION_MS : SESSION_LIFETIME_MILLISECONDS;
  const session: SessionDocument = context.accessProofs.proven("session", {
    _id: sessionId,
    userId: person.user._id,
    organizationId: person.organization._id,
    amr,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifetimeMs),
    refreshHash: refresh.hash,
    previousRefreshHash: null,
    refreshedAt: null,
    lastSeenAt: now,
    userAgent,
    ...(ssoSid === null ? {} : { ssoSid }),
    epoch: epochOf(person.user),
    revokedAt: null,
    revokedBecause: null,
    stepUpExpiresAt: null,
  });
  return { ...person, session, refreshToken: refresh.token };
}

/** Starts the provisioning of an organization that a server left waiting by dying before it started the workflow. */
export async function repairProvisioning(
  context: AuthContext,
  organization: OrganizationDocument,
): Promise<void> {
  if (organization.status === "provisioning") await context.provision(organization, 0);
}

/** Answer to an expired token, as opposed to an invalid one. */
const EXPIRED =
  `The session's token has expired: it lasts ${SESSION_TOKEN_LIFETIME_SECONDS / 60} minutes. Get a new one with the ` +
  "refresh token (POST /v1/auth/refresh), or sign in again.";

/**
 * Authenticates a session token: it must be genuine and fresh, its session alive, its user present. Role and elevation
 * come from the database, so that a change or a sign-out is effective at once; the organization may be cached.
 */
export async function authenticateSession(
  context: AuthContext,
  token: string,
  now: Date,
): Promise<Result<SessionPrincipal>> {
  const subject = await context.sessionTokens.verify(token, now);
  if (subject === null) return unauthorized();
  if (subject === "expired") return refused(refusal("UNAUTHORIZED", EXPIRED));
  const live = await readLiveSession(context, subject, now);
  if (live === null) return unauthorized();
  const { session, user } = live;
  if (now.getTime() - session.lastSeenAt.getTime() >= LAST_SEEN_PRECISION_MS)
    context.onSessionUsed(session._id);
  const mustEnrol = user.secondFactorRequired === true && !hasFactor(user);
  return ok(principalOf(live, mustEnrol));
}

/**
 * Exchanges a refresh token for new tokens. A used token gets the same refresh token during `REFRESH_REPLAY_MS`.
 * Afterwards, or once the successor was used, presenting it ends the session for both the person and a possible thief.
 */
export async function refreshSession(
  context: WritingContext,
  refreshToken: string,
  now: Date,
  noteAffected: NoteAffected = ignoreAffected,
): Promise<Result<SignedIn>> {
  const presented = context.refreshTokens.read(refreshToken);
  if (presented === null) return unauthorized();
  const live = await readLiveSession(context, { sessionId: presented.sessionId }, now);
  if (live === null) return unauthorized();
  const { organization, user } = live;
  noteAffected({ organizationId: organization._id, userId: user._id, name: user.name });
  const [next, ...others] = context.refreshTokens.successors(presented);
  const unused = { _id: presented.sessionId, refreshHash: presented.hash, revokedAt: null };
  const previousRefreshHash = presented.hash;
  const rotated = {
    $set: { refreshHash: next.hash, previousRefreshHash, refreshedAt: now, lastSeenAt: now },
  };
  const isFirst = await context.transaction(async (session) => {
    const { matchedCount } = await context.collections.sessions.updateOne(unused, rotated, { session });
    return matchedCount === 1 ? changed(true, { by: ownerOf(live) }) : unchanged(false);
  });
  if (isFirst) {
    await repairProvisioning(context, live.organization);
    return ok(await signedIn(context, live, next.token, now));
  }
  const usedSince = new Date(now.getTime() - REFRESH_REPLAY_MS);
  const _id = presented.sessionId;
  const justUsed = { _id, previousRefreshHash, refreshedAt: { $gt: usedSince }, revokedAt: null };
  const current = await context.collections.sessions.findOne(justUsed);
  const answered = [next, ...others].find(({ hash }) => hash === current?.refreshHash);
  if (answered !== undefined) return ok(await signedIn(context, live, answered.token, now));
  await endReused(context, live, now);
  return unauthorized();
}

/** Ends the session of a token that was used twice and refused. Idempotent; the first reason stays. */
async function endReused(
  { collections, transaction }: WritingContext,
  live: LiveSession,
  now: Date,
): Promise<void> {
  const alive = { _id: live.session._id, revokedAt: null };
  const ended = { $set: { revokedAt: now, revokedBecause: "refresh_reuse" } } as const;
  await transaction(async (session) => {
    const { matchedCount } = await collections.sessions.updateOne(alive, ended, { session });
    if (matchedCount === 0) return unchanged(null);
    return changed(null, { by: ownerOf(live), result: { status: 401, code: "UNAUTHORIZED" } });
  });
}

/** Ends the caller's own session: its tokens fail from the next request on. Idempotent; the first reason stays. */
export async function signOut(
  { clock, collections, transaction }: WritingContext,
  { sessionId }: SessionPrincipal,
): Promise<Result<null>> {
  const ended = { $set: { revokedAt: clock(), revokedBecause: "sign_out" } } as const;
  return await transaction(async (session) => {
    await collections.sessions.updateOne({ _id: sessionId, revokedAt: null }, ended, { session });
    return changed(ok(null));
  });
}

/**
 * Returns session, user and organization; null unless all three exist, are in force and belong together. The session's
 * person and organization are taken from its token, so that all can be read at once, and are compared with the records.
 */
async function readLiveSession(
  context: AuthContext,
  claimed: Pick<SessionTokenSubject, "sessionId"> & Partial<SessionTokenSubject>,
  now: Date,
): Promise<LiveSession | null> {
  const { loaders, organizations } = context;
  const reading = loaders.sessions.load(claimed.sessionId);
  const { organizationId, userId } = claimed.userId === undefined ? ((await reading) ?? claimed) : claimed;
  if (userId === undefined || organizationId === undefined) return null;
  const [session, user, organization] = await Promise.all([
    reading,
    loaders.users.load(userId),
    organizations.of(organizationId),
  ]);
  if (session === null || user === null || organization === null) return null;
  if (session.revokedAt !== null || session.expiresAt.getTime() <= now.getTime()) return null;
  if (isEndedBySso(session, user, now)) return null;
  if (session.userId !== userId || session.organizationId !== organizationId) return null;
  if (user.organizationId !== organizationId || !(await isOfEpoch(context, session, user))) return null;
  return { session, user, organization };
}

/** Whether the provider's settings end a session: begun another way than now required, or too long ago. */
function isEndedBySso({ amr, createdAt }: SessionDocument, user: UserDocument, now: Date): boolean {
  if (user.ssoRequired !== true) return false;
  return (isBehindSso(user) && !amr.includes("sso")) || now.getTime() - createdAt.getTime() >= SSO_SESSION_MS;
}

/**
 * Whether a session is of its person's current epoch. Both were read at once, so the session may have moved on with a
 * new password in between.
 */
async function isOfEpoch(
  { accessProofs, collections }: AuthContext,
  session: SessionDocument,
  user: UserDocument,
): Promise<boolean> {
  const epoch = epochOf(user);
  if (session.epoch >= epoch) return true;
  const still = { _id: session._id, epoch: { $gte: epoch }, revokedAt: null };
  return accessProofs.genuine("session", await collections.sessions.findOne(still)) !== null;
}

function principalOf({ session, user, organization }: LiveSession, mustEnrol: boolean): SessionPrincipal {
  return {
    type: "session",
    sessionId: session._id,
    userId: user._id,
    organizationId: organization._id,
    email: user.email,
    name: user.name,
    role: user.role,
    binding: user.binding ?? { type: "organization" },
    organization,
    signedInAt: session.createdAt,
    amr: session.amr,
    stepUpExpiresAt: session.stepUpExpiresAt,
    mustEnrol,
  };
}

async function signedIn(
  context: AuthContext,
  { session, user, organization }: LiveSession,
  refreshToken: string,
  now: Date,
): Promise<SignedIn> {
  const subject = {
    sessionId: session._id,
    userId: user._id,
    organizationId: organization._id,
    role: user.role,
    signedInAt: session.createdAt,
    amr: session.amr,
  };
  const [{ token, expiresAt }, factors] = await Promise.all([
    context.sessionTokens.sign(subject, now),
    context.collections.factors.find({ userId: user._id }).toArray(),
  ]);
  return {
    token,
    refreshToken,
    deviceToken: null,
    expiresAt: expiresAt.toISOString(),
    sessionEndsAt: session.expiresAt,
    of: ownerOf({ session, user, organization }),
    user: userView(user, factors),
    organization: organizationView(organization),
    secondFactorEnrolment: factorEnrolment(user, factors),
  };
}
