import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuthContext } from "./context.ts";
import { isDuplicateKey } from "../secrets/settings.ts";
import type { TotpFactorDocument } from "./documents.ts";
import { changeOwnFactors, factorsOf, hasFactor, stepUpRequired, whyNotEnrol } from "./factors.ts";
import { newUuid } from "./ids.ts";
import { isSteppedUp, type SessionPrincipal } from "./principal.ts";
import { newTotpSecret, otpauthUrl } from "./totp-code.ts";
import { sealTotpSecret, spendTotpCode, totpFactorId, type OnAccepted } from "./totp-factor.ts";
import { userView, type UserView } from "./views.ts";

export interface TotpEnrolment {
  /** Base32, for typing in. */
  readonly secret: string;
  /** The same for scanning. */
  readonly otpauthUrl: string;
}

/**
 * Begins the enrolment of TOTP. Nothing changes until it is confirmed; then it takes the place
 * of a TOTP secret confirmed before. While a second factor is in force, that needs step-up; else a sign-in of just now.
 */
export async function enrollTotp(
  context: AuthContext,
  principal: SessionPrincipal,
): Promise<Result<TotpEnrolment>> {
  const now = context.clock();
  const { userId } = principal;
  const steppedUp = isSteppedUp(principal, now);
  const reason = whyNotEnrol(principal, await factorsOf(context, userId), now);
  if (reason !== null) return refused(reason);
  await ensureRecord(context, userId);
  const secret = newTotpSecret(context.randomBytes);
  const id = newUuid(now, context.randomBytes);
  const pending = {
    id,
    sealedSecret: sealTotpSecret(context, userId, id, secret),
    createdAt: now,
    lastUsedStep: -1,
    wrongCodes: 0,
    lockedUntil: null,
    steppedUp,
  };
  // The condition is asked again where it counts: another session may have confirmed a factor since.
  const written = await context.collections.totpFactors.updateOne(
    { _id: totpFactorId(userId), ...(steppedUp ? {} : { confirmed: null }) },
    { $set: { pending } },
  );
  if (written.matchedCount === 0) return stepUpRequired();
  return ok({ secret, otpauthUrl: otpauthUrl(context.productName, principal.email, secret) });
}

/** Puts the enrolled TOTP in force with its first code, which is used up by it. Elevates nothing. */
export async function confirmTotp(
  context: AuthContext,
  principal: SessionPrincipal,
  code: string,
): Promise<Result<{ readonly user: UserView }>> {
  const now = context.clock();
  const { userId } = principal;
  const { totpFactors } = context.collections;
  return await changeOwnFactors(context, principal, async (session, user) => {
    const factor = await totpFactors.findOne({ _id: totpFactorId(userId) }, { session });
    // Begun before a factor was in force, it must not become a way round the step-up that is needed since.
    const isFurther = factor?.pending?.steppedUp === false && (await hasFactor(context, userId, session));
    if (isFurther && !isSteppedUp(principal, now)) return stepUpRequired();
    const request = { userId, slot: "pending", code, now, session } as const;
    const spent = await spendTotpCode(context, request, promotePending);
    if (!spent.ok) return spent;
    return ok({ user: userView(user, await factorsOf(context, userId, session)) });
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
