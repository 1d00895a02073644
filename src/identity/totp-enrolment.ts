import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { changed, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import type { PendingTotpSecret, TotpFactorDocument } from "../store/identity-documents.ts";
import {
  changeOwnFactors,
  enrolmentRefusal,
  factorsOf,
  genuineUser,
  hasFactor,
  holdFactors,
  stepUpRequired,
} from "./factors.ts";
import { newUuid } from "./ids.ts";
import { isSteppedUp, type SessionPrincipal } from "./session-principal.ts";
import { newTotpSecret, otpauthUrl } from "./totp-code.ts";
import {
  nothingToVerify,
  sealTotpSecret,
  spendTotpCode,
  totpFactorId,
  type OnAccepted,
} from "./totp-factor.ts";
import { userView, type UserView } from "./views.ts";

/** Longer than a passkey's challenge: a user may have to install an app first. */
const PENDING_LIFETIME_MILLISECONDS = 10 * 60 * 1000;

export interface TotpEnrolment {
  /** Base32, for typing in. */
  readonly secret: string;
  readonly otpauthUrl: string;
}

/**
 * Begins the enrolment of TOTP. Nothing changes until it is confirmed; it then replaces a secret confirmed earlier.
 * Needs step-up while a second factor is in force, else a recent sign-in. The secret can be confirmed only in this
 * session, for 10 minutes.
 */
export async function enrollTotp(
  context: WritingContext,
  principal: SessionPrincipal,
): Promise<Result<TotpEnrolment>> {
  const now = context.clock();
  const { sessionId, userId } = principal;
  const steppedUp = isSteppedUp(principal, now);
  const user = await genuineUser(context, userId);
  const reason = user === null ? refusal("UNAUTHORIZED") : enrolmentRefusal(principal, user, now);
  if (reason !== null) return refused(reason);
  await ensureRecord(context, userId);
  const secret = newTotpSecret(context.randomBytes);
  const id = newUuid(now, context.randomBytes);
  const begun: Omit<PendingTotpSecret, "proof"> = {
    id,
    sealedSecret: sealTotpSecret(context, userId, id, secret),
    createdAt: now,
    lastUsedStep: -1,
    wrongCodes: 0,
    lockedUntil: null,
    sessionId,
    expiresAt: new Date(now.getTime() + PENDING_LIFETIME_MILLISECONDS),
    steppedUp,
  };
  const record = { _id: totpFactorId(userId), pending: begun };
  const pending = { ...begun, proof: context.accessProofs.make("totpEnrolment", record) };
  // The condition is checked again in the transaction: another session may have confirmed a factor since.
  const own = { _id: totpFactorId(userId), ...(steppedUp ? {} : { confirmed: null }) };
  return await context.transaction<Result<TotpEnrolment>>(async (session) => {
    const { totpFactors } = context.collections;
    const { matchedCount } = await totpFactors.updateOne(own, { $set: { pending } }, { session });
    if (matchedCount === 0) return unchanged(stepUpRequired());
    return changed(ok({ secret, otpauthUrl: otpauthUrl(context.productName, principal.email, secret) }));
  });
}

/**
 * Puts the enrolled TOTP in force with its first code, which is consumed. Does not elevate the session. An enrolment
 * begun by another session, or more than 10 minutes ago, is answered as if there were none: `SECOND_FACTOR_INVALID`,
 * and no code is counted.
 */
export async function confirmTotp(
  context: WritingContext,
  principal: SessionPrincipal,
  code: string,
): Promise<Result<{ readonly user: UserView }>> {
  const now = context.clock();
  const { sessionId, userId } = principal;
  const { totpFactors } = context.collections;
  return await changeOwnFactors<{ readonly user: UserView }>(context, principal, async (session, user) => {
    const factor = await totpFactors.findOne({ _id: totpFactorId(userId) }, { session });
    if ((factor?.pending ?? null) === null) return unchanged(nothingToVerify());
    const pending = context.accessProofs.genuine("totpEnrolment", factor)?.pending ?? null;
    if (pending === null || pending.sessionId !== sessionId || pending.expiresAt <= now)
      return unchanged(nothingToVerify());
    // An enrolment begun before a factor was in force must not bypass the step-up required since.
    const isFurther = !pending.steppedUp && hasFactor(user);
    if (isFurther && !isSteppedUp(principal, now)) return unchanged(stepUpRequired());
    const { id } = pending;
    const request = { userId, slot: "pending", secretId: id, code, now, session } as const;
    const spent = await spendTotpCode(context, request, promotePending);
    // The count of attempts is written nevertheless.
    if (!spent.ok) return unchanged(spent);
    const others = (user.secondFactors ?? []).filter(({ kind }) => kind !== "totp");
    await holdFactors(context, user, [...others, { kind: "totp", id }], session);
    return changed(ok({ user: userView(user, await factorsOf(context, userId, session)) }));
  });
}

const promotePending: OnAccepted = ({ id, sealedSecret, createdAt }, step) => ({
  $set: {
    confirmed: { id, sealedSecret, createdAt, lastUsedStep: step, wrongCodes: 0, lockedUntil: null },
    pending: null,
  },
});

async function ensureRecord(context: AuthContext, userId: string): Promise<void> {
  const empty: TotpFactorDocument = {
    _id: totpFactorId(userId),
    userId,
    kind: "totp",
    confirmed: null,
    pending: null,
  };
  try {
    await context.collections.totpFactors.insertOne(empty);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}
