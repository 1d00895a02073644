import type { ClientSession } from "mongodb";
import { refusal } from "../../src/domain/errors.ts";
import { refused, type Result } from "../../src/domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { FactorDocument, UserDocument } from "./documents.ts";
import type { SessionPrincipal } from "./principal.ts";
import { isInForce } from "./views.ts";

export const stepUpRequired = () => refused(refusal("STEP_UP_REQUIRED"));

/** All of a person's second factors, those that were never confirmed too. */
export const factorsOf = (
  { collections }: Pick<AuthContext, "collections">,
  userId: string,
  session?: ClientSession,
): Promise<FactorDocument[]> =>
  collections.factors.find({ userId }, session === undefined ? {} : { session }).toArray();

/** Whether a second factor is in force, so that one more needs step-up. */
export const hasFactor = async (
  context: AuthContext,
  userId: string,
  session?: ClientSession,
): Promise<boolean> => (await factorsOf(context, userId, session)).some(isInForce);

/**
 * One change of one person's factors, alone: each writes the person's revision first, so that of two at once the second
 * starts over and sees what the first did. That makes "the first" and "the last" factor exact. Whoever was removed
 * meanwhile is `UNAUTHORIZED`.
 */
export async function changeFactors<T>(
  { collections, transaction, turns }: Pick<AuthContext, "collections" | "transaction" | "turns">,
  userId: string,
  change: (session: ClientSession, user: UserDocument) => Promise<Result<T>>,
): Promise<Result<T>> {
  const write = async (session: ClientSession): Promise<Result<T>> => {
    const next = { $inc: { factorsRevision: 1 } };
    const user = await collections.users.findOneAndUpdate({ _id: userId }, next, { session });
    return user === null ? refused(refusal("UNAUTHORIZED")) : await change(session, user);
  };
  return await turns.take(userId, () => transaction(write));
}

/**
 * The same by the person themselves, whose session must be alive when it counts: one that was ended after the request was
 * let in (`UNAUTHORIZED`) must not leave a factor behind.
 */
export const changeOwnFactors = <T>(
  context: AuthContext,
  { sessionId, userId }: Pick<SessionPrincipal, "sessionId" | "userId">,
  change: (session: ClientSession, user: UserDocument) => Promise<Result<T>>,
): Promise<Result<T>> =>
  changeFactors(context, userId, async (session, user) => {
    const own = { _id: sessionId, userId, revokedAt: null };
    const isAlive = (await context.collections.sessions.findOne(own, { session })) !== null;
    return isAlive ? await change(session, user) : refused(refusal("UNAUTHORIZED"));
  });
