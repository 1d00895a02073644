import type { Filter } from "mongodb";
import type { AuthenticationResponse } from "../contract/webauthn.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { AuthContext } from "./context.ts";
import { genuineUser } from "./factors.ts";
import type { PasskeyDocument, UserDocument } from "../store/identity-documents.ts";
import type { UsedPasskey } from "./passkey-ceremonies.ts";
import { type ChallengeFor, takeChallenge } from "./passkey-challenges.ts";
import { ceremonies } from "./webauthn.ts";

const NOT_ACCEPTED =
  "The passkey's response is not right for this request or was used already; ask for new options and try again.";

/** Refuses a signature without giving the reason, which would only help an attacker. */
export const notAccepted = () => refused(refusal("SECOND_FACTOR_INVALID", NOT_ACCEPTED));

/** An auditable change of a passkey that its use has shown. */
export interface PasskeyChange {
  readonly before: PasskeyFacts;
  readonly after: PasskeyFacts;
}

interface PasskeyFacts {
  readonly passkey: string;
  readonly counter: number;
  readonly backupEligible: boolean;
}

/** The passkey that answered a challenge, and its change; null if nothing changed unexpectedly. */
export interface AcceptedPasskey {
  readonly passkey: PasskeyDocument;
  readonly change: PasskeyChange | null;
}

/**
 * Returns the passkey that answered a challenge, after all checks passed: the challenge was issued for this purpose,
 * user and session and is consumed by this response; the passkey belongs to that user, or to any user if none is known;
 * origin, relying party, user verification and signature are right; and the counter advanced, if the passkey is bound
 * to one device. There is no lock as for TOTP: a code can be guessed, a signature can't, and the route's rate limits
 * bound the work. `onFound` gets the named passkey and its person before the signature is verified.
 */
export async function usePasskey(
  context: AuthContext,
  response: AuthenticationResponse,
  expected: ChallengeFor,
  onFound: (passkey: PasskeyDocument, user: UserDocument) => void = () => undefined,
): Promise<Result<AcceptedPasskey>> {
  const { challengeOf, verifyAssertion } = await ceremonies();
  const challenge = challengeOf(response);
  if (challenge === null || (await takeChallenge(context, challenge, expected)) === null)
    return notAccepted();
  const { userId } = expected;
  // The device names an unknown user by the handle, which is part of how it found the passkey.
  if (userId === null && typeof response.response.userHandle !== "string") return notAccepted();
  const owner = userId === null ? {} : { userId };
  const of = { kind: "passkey", credentialId: response.id, ...owner } as const;
  const passkey = await context.collections.passkeys.findOne(of);
  if (passkey === null) return notAccepted();
  const user = await genuineUser(context, passkey.userId);
  if (user === null || !isHeld(user, passkey)) return notAccepted();
  onFound(passkey, user);
  const used = await verifyAssertion(context.relyingParty, response, challenge, passkey);
  if (used === null) return notAccepted();
  const recorded = await recordUse(context, passkey, used);
  if (recorded === "removed") return notAccepted();
  // The signature is valid, so the person may learn what is wrong.
  if (recorded === "counter behind") return refused(refusal("PASSKEY_POSSIBLY_COPIED"));
  return ok({ passkey, change: changeOf(passkey, used) });
}

/** Whether the person's record names the passkey and its key. */
const isHeld = ({ secondFactors = [] }: UserDocument, { _id, publicKey }: PasskeyDocument): boolean =>
  secondFactors.some(
    (factor) => factor.kind === "passkey" && factor.id === _id && factor.publicKey === publicKey,
  );

/**
 * Stores the facts of a valid signature. A passkey that may be synced is on several devices by design, and password
 * managers move it, so any counter is accepted. A device-bound passkey is refused unless its counter is ahead of the
 * stored one, since an attacker may have a copy, and is marked for its person to see. It stays in force: the service
 * can't tell the copy from the original, and shutting out both would leave the person without a factor. A passkey that
 * was device-bound and may now be synced has been copied by somebody, so it is accepted and marked. The condition is
 * part of the write, so that of two concurrent signatures with one counter only one counts.
 */
async function recordUse(
  { clock, collections }: AuthContext,
  passkey: PasskeyDocument,
  used: UsedPasskey,
): Promise<"stored" | "counter behind" | "removed"> {
  const { _id } = passkey;
  const { counter } = used;
  const lastUsedAt = clock();
  const isSynced = passkey.backupEligible && used.backupEligible;
  // Passkeys without a counter report 0 each time.
  const went: Filter<PasskeyDocument> = counter === 0 ? { counter: 0 } : { counter: { $lt: counter } };
  const isCopied = used.backupEligible && !passkey.backupEligible;
  const kept = await collections.passkeys.updateOne(
    { _id, ...(isSynced ? {} : went) },
    { $set: { ...used, lastUsedAt, ...(isCopied ? { suspectedCloneAt: lastUsedAt } : {}) } },
  );
  if (kept.matchedCount === 1) return "stored";
  const marked = await collections.passkeys.updateOne({ _id }, { $set: { suspectedCloneAt: lastUsedAt } });
  return marked.matchedCount === 1 ? "counter behind" : "removed";
}

function changeOf(passkey: PasskeyDocument, used: UsedPasskey): PasskeyChange | null {
  const isBehind = passkey.counter > 0 && used.counter <= passkey.counter;
  if (!isBehind && used.backupEligible === passkey.backupEligible) return null;
  return { before: factsOf(passkey._id, passkey), after: factsOf(passkey._id, used) };
}

const factsOf = (passkey: string, { backupEligible, counter }: UsedPasskey): PasskeyFacts => ({
  passkey,
  counter,
  backupEligible,
});
