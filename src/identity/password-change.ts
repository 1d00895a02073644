import type { ClientSession } from "mongodb";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { changed, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { SessionEnd, UserDocument } from "../store/identity-documents.ts";
import { genuineUser } from "./factors.ts";
import { invalid } from "./new-user.ts";
import { chosenPasswordIssue } from "./passwords.ts";
import { epochOf, type SessionPrincipal } from "./session-principal.ts";

export interface PasswordChange {
  readonly currentPassword: string;
  readonly newPassword: string;
}

export interface SessionsEnded {
  readonly sessionsEnded: number;
}

type Writing = Pick<WritingContext, "accessProofs" | "clock" | "collections" | "passwords" | "transaction">;

const wrongPassword = () => refused(refusal("PASSWORD_INVALID"));

/**
 * Changes the caller's password and ends their other sessions, including those being begun with the old password. The
 * new password must be as strong as a first one, else `VALIDATION_FAILED`. A wrong current password is
 * `PASSWORD_INVALID`; a session that has ended meanwhile changes nothing (`UNAUTHORIZED`).
 */
export async function changePassword(
  context: WritingContext,
  principal: SessionPrincipal,
  { currentPassword, newPassword }: PasswordChange,
): Promise<Result<SessionsEnded>> {
  const { accessProofs, collections, passwords, transaction } = context;
  const { sessionId, userId } = principal;
  const user = await genuineUser(context, userId);
  if (user === null || !(await passwords.matches(user.passwordHash, currentPassword))) return wrongPassword();
  const issue = await issueOf(context, user, newPassword);
  if (issue !== null) return refused(invalid("newPassword", issue));
  const passwordHash = await passwords.hash(user.email, newPassword);
  return await transaction<Result<SessionsEnded>>(async (session) => {
    const own = { _id: sessionId, userId, revokedAt: null };
    const current = accessProofs.genuine("session", await collections.sessions.findOne(own, { session }));
    if (current === null) return unchanged(refused(refusal("UNAUTHORIZED")));
    // The second of two changes with one current password finds that password replaced.
    const asRead = { _id: userId, passwordHash: user.passwordHash };
    const epoch = await replacePassword(context, asRead, passwordHash, session);
    if (epoch === null) return unchanged(wrongPassword());
    const kept = accessProofs.changed("session", current, { epoch });
    await collections.sessions.updateOne(own, { $set: kept }, { session });
    await dropEnrolment(context, userId, session);
    const others = { userId, _id: { $ne: sessionId } };
    const ended = { sessionsEnded: await endSessions(context, others, "password_changed", session) };
    return changed(ok(ended), { after: ended });
  });
}

/**
 * Sets a person's password and ends all their sessions. `UNAUTHORIZED` if the person does not exist,
 * `VALIDATION_FAILED` for a weak password. For the operator alone: no operation of the service calls this.
 */
export async function resetPassword(
  context: Writing,
  { _id: userId, email }: Pick<UserDocument, "_id" | "email">,
  password: string,
): Promise<Result<SessionsEnded>> {
  const passwordHash = await context.passwords.hash(email, password);
  return await context.transaction<Result<SessionsEnded>>(async (session) => {
    const epoch = await replacePassword(context, { _id: userId }, passwordHash, session);
    if (epoch === null) return unchanged(refused(refusal("UNAUTHORIZED")));
    await dropEnrolment(context, userId, session);
    const sessionsEnded = await endSessions(context, { userId }, "password_reset", session);
    return changed(ok({ sessionsEnded }));
  });
}

/** Returns what is wrong with a person's new password, in words for that person, or null. */
export async function issueOf(
  { collections }: Pick<AuthContext, "collections">,
  { email, name, organizationId }: UserDocument,
  password: string,
): Promise<string | null> {
  const organization = await collections.organizations.findOne({ _id: organizationId });
  return await chosenPasswordIssue(password, [email, name, organization?.name ?? ""]);
}

/** Returns the epoch of new sessions; null if the person does not exist or their record is not genuine. */
async function replacePassword(
  { accessProofs, collections: { users } }: Pick<AuthContext, "accessProofs" | "collections">,
  which: { readonly _id: string; readonly passwordHash?: string },
  passwordHash: string,
  session: ClientSession,
): Promise<number | null> {
  const user = accessProofs.genuine("user", await users.findOne(which, { session }));
  if (user === null) return null;
  const sessionsEpoch = epochOf(user) + 1;
  const change = accessProofs.changed("user", user, { passwordHash, sessionsEpoch });
  await users.updateOne({ _id: user._id }, { $set: change }, { session });
  return sessionsEpoch;
}

/** Discards an unconfirmed code generator, which an earlier holder of the account may have begun. */
async function dropEnrolment(
  { collections }: Pick<AuthContext, "collections">,
  userId: string,
  session: ClientSession,
): Promise<void> {
  const begun = { userId, kind: "totp", pending: { $ne: null } } as const;
  await collections.totpFactors.updateMany(begun, { $set: { pending: null } }, { session });
}

/** Ends the live sessions among those selected; returns their number. */
export async function endSessions(
  { clock, collections }: Pick<AuthContext, "clock" | "collections">,
  which: { readonly userId: string; readonly _id?: { readonly $ne: string } },
  because: SessionEnd,
  session: ClientSession,
): Promise<number> {
  const now = clock();
  const alive = { ...which, revokedAt: null, expiresAt: { $gt: now } };
  const ended = { $set: { revokedAt: now, revokedBecause: because } };
  return (await collections.sessions.updateMany(alive, ended, { session })).modifiedCount;
}
