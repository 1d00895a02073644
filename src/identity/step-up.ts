import type { AuthenticationResponse, RequestOptions } from "../contract/webauthn.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { changed, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import { factorsOf, genuineUser } from "./factors.ts";
import { ceremonies } from "./webauthn.ts";
import { type ChallengeFor, issueChallenge } from "./passkey-challenges.ts";
import { type PasskeyChange, usePasskey } from "./passkey-use.ts";
import type { SessionPrincipal } from "./session-principal.ts";
import { nothingToVerify, onlyUseCode, spendTotpCode } from "./totp-factor.ts";
import { isPasskey } from "./views.ts";

const STEP_UP_MILLISECONDS = 5 * 60 * 1000;

export type StepUpInput =
  | { readonly method: "totp"; readonly code: string }
  | { readonly method: "passkey"; readonly response: AuthenticationResponse };

const NO_PASSKEY = "There is no passkey to verify; begin with POST /v1/auth/passkeys/options.";

const stepUpBy = ({ sessionId, userId }: SessionPrincipal): ChallengeFor => ({
  purpose: "step_up",
  userId,
  sessionId,
});

/** Begins a step-up by one of the person's passkeys. */
export async function stepUpOptions(
  context: AuthContext,
  principal: SessionPrincipal,
): Promise<Result<RequestOptions>> {
  const passkeys = (await factorsOf(context, principal.userId)).filter(isPasskey);
  if (passkeys.length === 0) return refused(refusal("SECOND_FACTOR_INVALID", NO_PASSKEY));
  const challenge = await issueChallenge(context, stepUpBy(principal));
  return ok(await (await ceremonies()).assertionOptions(context.relyingParty, challenge, passkeys));
}

/**
 * Elevates the session, on its record rather than in the token, so that every server sees it, even with an old token.
 */
export async function stepUp(
  context: WritingContext,
  principal: SessionPrincipal,
  input: StepUpInput,
): Promise<Result<{ readonly stepUpExpiresAt: string }>> {
  const now = context.clock();
  const verified = await verifyFactor(context, principal, input, now);
  if (!verified.ok) return verified;
  const stepUpExpiresAt = new Date(now.getTime() + STEP_UP_MILLISECONDS);
  const { accessProofs, collections } = context;
  const alive = { _id: principal.sessionId, revokedAt: null };
  return await context.transaction<Result<{ readonly stepUpExpiresAt: string }>>(async (session) => {
    const own = accessProofs.genuine("session", await collections.sessions.findOne(alive, { session }));
    if (own === null) return unchanged(refused(refusal("UNAUTHORIZED")));
    const elevated = accessProofs.changed("session", own, { stepUpExpiresAt });
    await collections.sessions.updateOne(alive, { $set: elevated }, { session });
    return changed(ok({ stepUpExpiresAt: stepUpExpiresAt.toISOString() }), { ...verified.value });
  });
}

async function verifyFactor(
  context: AuthContext,
  principal: SessionPrincipal,
  input: StepUpInput,
  now: Date,
): Promise<Result<PasskeyChange | null>> {
  if (input.method === "passkey") {
    const used = await usePasskey(context, input.response, stepUpBy(principal));
    return used.ok ? ok(used.value.change) : used;
  }
  const { userId } = principal;
  const user = await genuineUser(context, userId);
  const totp = user?.secondFactors?.find(({ kind }) => kind === "totp");
  if (totp === undefined) return nothingToVerify();
  const request = { userId, slot: "confirmed", secretId: totp.id, code: input.code, now } as const;
  const spent = await spendTotpCode(context, request, onlyUseCode);
  return spent.ok ? ok(null) : spent;
}
