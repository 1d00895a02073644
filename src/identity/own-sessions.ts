import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { changed, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { SessionDocument } from "../store/identity-documents.ts";
import { endSessions, type SessionsEnded } from "./password-change.ts";
import { epochOf, type SessionPrincipal } from "./session-principal.ts";

/** More sign-ins than a user makes within a month. Unlisted sessions are ended like all others. */
const SESSIONS_LISTED_MAX = 200;

/** Returns the caller's own live sessions, newest first, up to `SESSIONS_LISTED_MAX`. */
export async function ownSessions(
  { clock, collections }: AuthContext,
  { userId }: SessionPrincipal,
): Promise<Result<readonly SessionDocument[]>> {
  const user = await collections.users.findOne({ _id: userId });
  if (user === null) return refused(refusal("UNAUTHORIZED"));
  const alive = { userId, epoch: epochOf(user), revokedAt: null, expiresAt: { $gt: clock() } };
  const newest = collections.sessions.find(alive).sort({ createdAt: -1, _id: -1 });
  return ok(await newest.limit(SESSIONS_LISTED_MAX).toArray());
}

/**
 * Ends one of the caller's own sessions, possibly the current one. Any other session, or an ended one, is `NOT_FOUND`.
 */
export async function endOwnSession(
  { clock, collections, transaction }: WritingContext,
  { userId }: SessionPrincipal,
  id: string,
): Promise<Result<null>> {
  const now = clock();
  const alive = { _id: id, userId, revokedAt: null, expiresAt: { $gt: now } };
  const ended = { $set: { revokedAt: now, revokedBecause: "ended" } } as const;
  return await transaction<Result<null>>(async (session) => {
    const { matchedCount } = await collections.sessions.updateOne(alive, ended, { session });
    return matchedCount === 1 ? changed(ok(null)) : unchanged(refused(refusal("NOT_FOUND")));
  });
}

export async function endOtherSessions(
  context: WritingContext,
  { sessionId, userId }: SessionPrincipal,
): Promise<Result<SessionsEnded>> {
  const others = { userId, _id: { $ne: sessionId } };
  return await context.transaction<Result<SessionsEnded>>(async (session) => {
    const ended = { sessionsEnded: await endSessions(context, others, "ended", session) };
    return changed(ok(ended), { after: ended });
  });
}
