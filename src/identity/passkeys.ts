import type { CreationOptions, RegistrationResponse } from "../contract/webauthn.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { newId } from "../lib/ids.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { isAdministrative } from "../domain/roles.ts";
import { changed, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { PasskeyDocument } from "../store/identity-documents.ts";
import {
  changeOwnFactors,
  enrolmentRefusal,
  factorsOf,
  genuineUser,
  hasFactor,
  holdFactors,
  stepUpRequired,
} from "./factors.ts";
import type { NewPasskey } from "./passkey-ceremonies.ts";
import { type ChallengeFor, issueChallenge, takeChallenge } from "./passkey-challenges.ts";
import { notAccepted } from "./passkey-use.ts";
import { isSteppedUp, type SessionPrincipal } from "./session-principal.ts";
import { isPasskey } from "./views.ts";
import { ceremonies } from "./webauthn.ts";

/** More devices than a user has. Each is part of every ceremony's options, hence the limit. */
export const PASSKEYS_MAX = 20;

export interface EnrollPasskeyInput {
  readonly name: string;
  readonly response: RegistrationResponse;
}

const enrolmentBy = ({ sessionId, userId }: SessionPrincipal): ChallengeFor => ({
  purpose: "enrolment",
  userId,
  sessionId,
});

/** Begins the enrolment of a passkey. Needs step-up while a second factor is in force, else a recent sign-in. */
export async function passkeyOptions(
  context: AuthContext,
  principal: SessionPrincipal,
): Promise<Result<CreationOptions>> {
  const { productName, relyingParty } = context;
  const [user, factors] = await Promise.all([
    genuineUser(context, principal.userId),
    factorsOf(context, principal.userId),
  ]);
  const now = context.clock();
  const steppedUp = isSteppedUp(principal, now);
  const reason = user === null ? refusal("UNAUTHORIZED") : enrolmentRefusal(principal, user, now);
  if (reason !== null) return refused(reason);
  const passkeys = factors.filter(isPasskey);
  if (passkeys.length >= PASSKEYS_MAX) return refused(refusal("TOO_MANY_PASSKEYS"));
  const challenge = await issueChallenge(context, enrolmentBy(principal), steppedUp);
  const { enrolmentOptions } = await ceremonies();
  return ok(await enrolmentOptions({ id: relyingParty.id, productName }, principal, challenge, passkeys));
}

/**
 * Puts a passkey in force. Does not elevate the session, and leaves other sessions alive. A credential already enrolled
 * by any user is refused like an invalid response, so that its owner is not disclosed.
 */
export async function enrollPasskey(
  context: WritingContext,
  principal: SessionPrincipal,
  { name, response }: EnrollPasskeyInput,
): Promise<Result<PasskeyDocument>> {
  const { challengeOf, verifyEnrolment } = await ceremonies();
  const challenge = challengeOf(response);
  const taken = challenge === null ? null : await takeChallenge(context, challenge, enrolmentBy(principal));
  if (challenge === null || taken === null) return notAccepted();
  const verified = await verifyEnrolment(context.relyingParty, response, challenge);
  if (verified === null) return notAccepted();
  const transports = response.response.transports ?? [];
  const passkey = newPasskey(principal.userId, { name, transports }, verified, context.clock());
  const steppedUp = taken.steppedUp || isSteppedUp(principal, context.clock());
  try {
    return await insertPasskey(context, principal, passkey, steppedUp);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return notAccepted();
  }
}

/**
 * Inserts the passkey. Checks the condition again in the transaction: another session may have enrolled a factor since.
 */
const insertPasskey = (
  context: WritingContext,
  principal: SessionPrincipal,
  passkey: PasskeyDocument,
  steppedUp: boolean,
): Promise<Result<PasskeyDocument>> =>
  changeOwnFactors<PasskeyDocument>(context, principal, async (session, user) => {
    const { _id: id, name, publicKey, userId } = passkey;
    if (!steppedUp && hasFactor(user)) return unchanged(stepUpRequired());
    const { passkeys } = context.collections;
    const count = await passkeys.countDocuments({ userId, kind: "passkey" }, { session });
    if (count >= PASSKEYS_MAX) return unchanged(refused(refusal("TOO_MANY_PASSKEYS")));
    await passkeys.insertOne(passkey, { session });
    const held = { kind: "passkey", id, publicKey } as const;
    await holdFactors(context, user, [...(user.secondFactors ?? []), held], session);
    return changed(ok(passkey), { on: { type: "passkey", id }, after: { name } });
  });

const newPasskey = (
  userId: string,
  chosen: Pick<PasskeyDocument, "name" | "transports">,
  verified: NewPasskey,
  createdAt: Date,
): PasskeyDocument => ({
  _id: newId("pky"),
  userId,
  kind: "passkey",
  ...chosen,
  ...verified,
  createdAt,
  lastUsedAt: null,
  suspectedCloneAt: null,
});

export async function renamePasskey(
  { collections, transaction }: WritingContext,
  { userId }: SessionPrincipal,
  id: string,
  name: string,
): Promise<Result<PasskeyDocument>> {
  const own = { _id: id, userId, kind: "passkey" } as const;
  const change = { $set: { name } };
  return await transaction<Result<PasskeyDocument>>(async (session) => {
    const before = await collections.passkeys.findOneAndUpdate(own, change, { session });
    if (before === null) return unchanged(refused(refusal("NOT_FOUND")));
    return changed(ok({ ...before, name }), { before: { name: before.name }, after: { name } });
  });
}

/**
 * Removes one of the person's own passkeys. An owner or admin, whose rights need step-up, keeps a last factor: with
 * only a password, an attacker could enrol a first factor and step up with it. Members never step up; they keep a last
 * factor if their organization requires one.
 */
export const removePasskey = (
  context: WritingContext,
  principal: SessionPrincipal,
  id: string,
): Promise<Result<null>> =>
  changeOwnFactors<null>(context, principal, async (session, user) => {
    const { _id: userId, role, secondFactorRequired, secondFactors = [] } = user;
    const own = { _id: id, userId, kind: "passkey" } as const;
    const one = await context.collections.passkeys.findOne(own, { session });
    if (one === null) return unchanged(refused(refusal("NOT_FOUND")));
    const others = secondFactors.filter((factor) => factor.id !== id);
    const mustKeepOne = isAdministrative(role) || secondFactorRequired === true;
    if (mustKeepOne && others.length === 0) return unchanged(refused(refusal("LAST_FACTOR")));
    await context.collections.passkeys.deleteOne(own, { session });
    await holdFactors(context, user, others, session);
    return changed(ok(null), { before: { name: one.name } });
  });
