import type { OutputOf } from "../../src/contract/types.ts";
import type { Operations } from "../../src/contract/registry.ts";
import { ok, type Result } from "../../src/domain/result.ts";
import type { SignedIn } from "../../src/identity/sessions.ts";
import type { Reply } from "./types.ts";

/** Returns the response of every sign-in. The tokens are separate, since a browser gets them in cookies. */
export function sessionReply(signedIn: Result<SignedIn>): Result<Reply<OutputOf<Operations["signIn"]>>> {
  if (!signedIn.ok) return signedIn;
  const {
    deviceToken,
    expiresAt,
    organization,
    refreshToken,
    secondFactorEnrolment,
    sessionEndsAt,
    token,
    user,
    of,
  } = signedIn.value;
  return ok({
    body: {
      expiresAt,
      user: { ...user, secondFactors: [...user.secondFactors] },
      organization,
      secondFactorEnrolment,
    },
    session: { token, refreshToken, deviceToken, expiresAt, sessionEndsAt, of },
  });
}
