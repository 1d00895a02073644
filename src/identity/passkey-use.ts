import type { Filter } from "mongodb";
import type { AuthenticationResponse } from "../contract/webauthn.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { PasskeyDocument } from "../store/identity-documents.ts";
import type { UsedPasskey } from "./passkey-ceremonies.ts";
import { type ChallengeFor, takeChallenge } from "./passkey-challenges.ts";
import { ceremonies } from "./webauthn.ts";

const NOT_ACCEPTED =
  "The passkey's response is not right for this request or was used already; ask for new options and try again.";

/** Whatever is wrong: saying which would only help an attacker. */
export const notAccepted = () => refused(refusal("SECOND_FACTOR_INVALID", NOT_ACCEPTED));

/**
 * The passkey that answered a challenge, once all of it was found right: a challenge of ours for this very purpose, user and
 * session, taken by this response; a passkey of that user, or of any user where none is known; origin, relying party, user
 * verification, signature; a counter that went on. There is no lock as TOTP has: a code can be guessed, a signature can't, and
 * the route's caps bound the work. `onFound` gets the passkey that the response names before its signature is verified.
 */
export async function usePasskey(
  context: AuthContext,
  response: AuthenticationResponse,
  expected: ChallengeFor,
  onFound: (passkey: PasskeyDocument) => Promise<void> = async () => undefined,
): Promise<Result<PasskeyDocument>> {
  const { challengeOf, verifyAssertion } = await ceremonies();
  const challenge = challengeOf(response);
  if (challenge === null || (await takeChallenge(context, challenge, expected)) === null)
    return notAccepted();
  const { userId } = expected;
  // A user who is not known yet is named by the device: the handle is part of what it found the passkey by.
  if (userId === null && typeof response.response.userHandle !== "string") return notAccepted();
  const owner = userId === null ? {} : { userId };
  const of = { kind: "passkey", credentialId: response.id, ...owner } as const;
  const passkey = await context.collections.passkeys.findOne(of);
  if (passkey === null) return notAccepted();
  await onFound(passkey);
  const used = await verifyAssertion(context.relyingParty, response, challenge, passkey);
  if (used === null || !(await recordUse(context, passkey._id, used))) return notAccepted();
  return ok(passkey);
}

/**
 * Keeps what a good signature said. False where its counter is not ahead of the one that is known, as when an attacker
 * has a copy of the passkey: this signature is refused and the passkey marked for its person to see. It stays in force,
 * since the service can't tell the copy from the original, and shutting both out would leave the person without a factor. The
 * condition is part of the write, so that of two signatures at once with one counter one counts; a passkey that was
 * removed meanwhile is used no more.
 */
async function recordUse(
  { clock, collections }: AuthContext,
  _id: string,
  { backedUp, counter }: UsedPasskey,
): Promise<boolean> {
  const lastUsedAt = clock();
  // One that counts nothing says 0 each time.
  const went: Filter<PasskeyDocument> = counter === 0 ? { counter: 0 } : { counter: { $lt: counter } };
  const kept = await collections.passkeys.updateOne(
    { _id, ...went },
    { $set: { counter, backedUp, lastUsedAt } },
  );
  if (kept.matchedCount === 1) return true;
  await collections.passkeys.updateOne({ _id }, { $set: { suspectedCloneAt: lastUsedAt } });
  return false;
}
