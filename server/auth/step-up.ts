import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { SessionPrincipal } from "./principal.ts";
import { keepConfirmed, spendTotpCode } from "./totp-factor.ts";

/** decisions.md section 2: a step-up elevates the session for 5 minutes. */
const STEP_UP_MILLISECONDS = 5 * 60 * 1000;

/** A passkey's response becomes the second member. */
export interface StepUpInput {
  readonly method: "totp";
  readonly code: string;
}

/** Elevates the session, on its record and not in the token, so that every server and an old token see it. */
export async function stepUp(
  context: AuthContext,
  principal: SessionPrincipal,
  input: StepUpInput,
): Promise<Result<{ readonly stepUpExpiresAt: string }>> {
  const now = context.clock();
  const { userId, sessionId } = principal;
  const request = { userId, slot: "confirmed", code: input.code, now } as const;
  const spent = await spendTotpCode(context, request, keepConfirmed);
  if (!spent.ok) return spent;
  const stepUpExpiresAt = new Date(now.getTime() + STEP_UP_MILLISECONDS);
  const elevated = await context.collections.sessions.updateOne(
    { _id: sessionId, revokedAt: null },
    { $set: { stepUpExpiresAt } },
  );
  if (elevated.matchedCount === 0) return refused(refusal("UNAUTHORIZED"));
  return ok({ stepUpExpiresAt: stepUpExpiresAt.toISOString() });
}
