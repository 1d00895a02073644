import type { ClientSession } from "mongodb";
import { type Refusal, refusal } from "../domain/errors.ts";
import { refused, type Result } from "../domain/result.ts";
import { type Outcome, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { FactorDocument, HeldFactor, UserDocument } from "../store/identity-documents.ts";
import { epochOf, isFreshlySignedIn, isSteppedUp, type SessionPrincipal } from "./session-principal.ts";

export const stepUpRequired = () => refused(refusal("STEP_UP_REQUIRED"));

/** Returns all of a person's second factors, including unconfirmed ones. */
export const factorsOf = (
  { collections }: Pick<AuthContext, "collections">,
  userId: string,
  session?: ClientSession,
): Promise<FactorDocument[]> =>
  collections.factors.find({ userId }, session === undefined ? {} : { session }).toArray();

/** Whether a second factor is in force, so that another needs step-up. The person's record decides. */
export const hasFactor = ({ secondFactors = [] }: UserDocument): boolean => secondFactors.length > 0;

/** Returns a person's current record; null if it is missing or was not written by the service. */
export const genuineUser = async (
  { accessProofs, collections }: Pick<AuthContext, "accessProofs" | "collections">,
  userId: string,
): Promise<UserDocument | null> =>
  accessProofs.genuine("user", await collections.users.findOne({ _id: userId }));

/** Writes a person's second factors in force, as part of `changeFactors`. */
export async function holdFactors(
  { accessProofs, collections }: Pick<AuthContext, "accessProofs" | "collections">,
  user: UserDocument,
  secondFactors: readonly HeldFactor[],
  session: ClientSession,
): Promise<void> {
  const change = accessProofs.changed("user", user, { secondFactors });
  await collections.users.updateOne({ _id: user._id }, { $set: change }, { session });
}

const SIGN_IN_AGAIN =
  "The first second factor needs a sign-in within the last 5 minutes: sign in again, then enrol it.";

/**
 * Returns why a user must not begin an enrolment now, or null. A further factor needs step-up with an existing one. The
 * first factor needs a recent sign-in: otherwise a thief with a refresh token could enrol a factor and step up with it.
 */
export function enrolmentRefusal(principal: SessionPrincipal, user: UserDocument, now: Date): Refusal | null {
  if (isSteppedUp(principal, now)) return null;
  if (hasFactor(user)) return refusal("STEP_UP_REQUIRED");
  return isFreshlySignedIn(principal, now) ? null : refusal("STEP_UP_REQUIRED", SIGN_IN_AGAIN);
}

/**
 * Changes one person's factors exclusively. Each change first writes the person's revision, so the second of two
 * concurrent changes starts over and sees the first one's result. That makes "the first" and "the last" factor exact.
 * Returns `UNAUTHORIZED` for a user who was removed meanwhile or whose record is not genuine.
 */
export async function changeFactors<T>(
  {
    accessProofs,
    collections,
    transaction,
    mutex,
  }: Pick<WritingContext, "accessProofs" | "collections" | "transaction" | "mutex">,
  userId: string,
  change: (session: ClientSession, user: UserDocument) => Promise<Outcome<Result<T>>>,
): Promise<Result<T>> {
  const write = async (session: ClientSession): Promise<Outcome<Result<T>>> => {
    const next = { $inc: { factorsRevision: 1 } };
    const found = await collections.users.findOneAndUpdate({ _id: userId }, next, { session });
    const user = accessProofs.genuine("user", found);
    return user === null ? unchanged(refused(refusal("UNAUTHORIZED"))) : await change(session, user);
  };
  return await mutex.run(userId, () => transaction(write));
}

/**
 * Changes a person's own factors. Returns `UNAUTHORIZED` unless their session is alive at the write: a session that
 * ended after the request was accepted must not leave a factor behind.
 */
export const changeOwnFactors = <T>(
  context: WritingContext,
  { sessionId, userId }: Pick<SessionPrincipal, "sessionId" | "userId">,
  change: (session: ClientSession, user: UserDocument) => Promise<Outcome<Result<T>>>,
): Promise<Result<T>> =>
  changeFactors<T>(context, userId, async (session, user) => {
    const own = { _id: sessionId, userId, epoch: { $gte: epochOf(user) }, revokedAt: null };
    const isAlive = (await context.collections.sessions.findOne(own, { session })) !== null;
    return isAlive ? await change(session, user) : unchanged(refused(refusal("UNAUTHORIZED")));
  });
