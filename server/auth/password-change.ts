import type { ClientSession } from "mongodb";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { SessionEnd, UserDocument } from "./documents.ts";
import { invalid } from "./new-user.ts";
import { chosenPasswordIssue, hashPassword } from "./passwords.ts";
import { epochOf, type SessionPrincipal } from "./principal.ts";

export interface PasswordChange {
  readonly currentPassword: string;
  readonly newPassword: string;
}

export interface SessionsEnded {
  readonly sessionsEnded: number;
}

type Writing = Pick<AuthContext, "clock" | "collections" | "transaction">;

const wrongPassword = () => refused(refusal("PASSWORD_INVALID"));

/**
 * Changes one's own password and ends one's other sessions, those included that are being begun with the old one. The
 * new password must be as good as a first one: else `VALIDATION_FAILED`. A wrong current password is `PASSWORD_INVALID`;
 * a session that has ended meanwhile changes nothing (`UNAUTHORIZED`).
 */
export async function changePassword(
  context: AuthContext,
  principal: SessionPrincipal,
  { currentPassword, newPassword }: PasswordChange,
): Promise<Result<SessionsEnded>> {
  const { collections, passwords, transaction } = context;
  const { sessionId, userId } = principal;
  const user = await collections.users.findOne({ _id: userId });
  const isRight = await passwords.matches(user?.passwordHash ?? null, currentPassword);
  if (user === null || !isRight) return wrongPassword();
  const issue = await issueOf(context, user, newPassword);
  if (issue !== null) return refused(invalid("newPassword", issue));
  const passwordHash = await hashPassword(newPassword);
  return await transaction(async (session) => {
    const own = { _id: sessionId, userId, revokedAt: null };
    if ((await collections.sessions.findOne(own, { session })) === null)
      return refused(refusal("UNAUTHORIZED"));
    // Of two changes with one current password the second's is not current any more.
    const unchanged = { _id: userId, passwordHash: user.passwordHash };
    const changed = await collections.users.findOneAndUpdate(unchanged, replacing(passwordHash), {
      session,
      returnDocument: "after",
    });
    if (changed === null) return wrongPassword();
    await collections.sessions.updateOne(own, { $set: { epoch: epochOf(changed) } }, { session });
    const others = { userId, _id: { $ne: sessionId } };
    return ok({ sessionsEnded: await endSessions(context, others, "password_changed", session) });
  });
}

/**
 * Gives a person another password and ends all their sessions. `UNAUTHORIZED` where there is no such person,
 * `VALIDATION_FAILED` for a password that is too weak. For the operator alone: no operation of the service leads here.
 */
export async function resetPassword(
  context: Writing,
  userId: string,
  password: string,
): Promise<Result<SessionsEnded>> {
  const passwordHash = await hashPassword(password);
  return await context.transaction(async (session) => {
    const replaced = await context.collections.users.updateOne({ _id: userId }, replacing(passwordHash), {
      session,
    });
    if (replaced.matchedCount === 0) return refused(refusal("UNAUTHORIZED"));
    return ok({ sessionsEnded: await endSessions(context, { userId }, "password_reset", session) });
  });
}

/** What is wrong with a password that a person is to have from now on, in words for them, or null. */
export async function issueOf(
  { collections }: Pick<AuthContext, "collections">,
  { email, name, organizationId }: UserDocument,
  password: string,
): Promise<string | null> {
  const organization = await collections.organizations.findOne({ _id: organizationId });
  return await chosenPasswordIssue(password, [email, name, organization?.name ?? ""]);
}

const replacing = (passwordHash: string) => ({ $set: { passwordHash }, $inc: { sessionsEpoch: 1 } });

/** Ends those that are alive of the sessions named; answers how many there were. */
export async function endSessions(
  { clock, collections }: Pick<AuthContext, "clock" | "collections">,
  which: { readonly userId: string; readonly _id?: { readonly $ne: string } },
  because: SessionEnd,
  session?: ClientSession,
): Promise<number> {
  const now = clock();
  const alive = { ...which, revokedAt: null, expiresAt: { $gt: now } };
  const ended = { $set: { revokedAt: now, revokedBecause: because } };
  const options = session === undefined ? {} : { session };
  return (await collections.sessions.updateMany(alive, ended, options)).modifiedCount;
}
