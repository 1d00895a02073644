import { createHash } from "node:crypto";
import type { AuthContext } from "./context.ts";
import type { PasskeyChallengeDocument, PasskeyPurpose } from "../store/identity-documents.ts";

/** Time for a person to answer their device's prompts: lifetime of a challenge, and timeout of the browser's dialog. */
export const CHALLENGE_MILLISECONDS = 5 * 60 * 1000;

/** Twice the size recommended by WebAuthn. */
const CHALLENGE_SIZE_BYTES = 32;

export interface ChallengeFor {
  readonly purpose: PasskeyPurpose;
  /** Null at sign-in, as is `sessionId`: the user has no session yet. */
  readonly userId: string | null;
  readonly sessionId: string | null;
}

/** Issues a challenge for one purpose, valid once and for 5 minutes of the service's clock. */
export async function issueChallenge(
  { accessProofs, clock, collections, randomBytes }: AuthContext,
  { purpose, sessionId, userId }: ChallengeFor,
  steppedUp = false,
): Promise<Uint8Array<ArrayBuffer>> {
  const challenge = Uint8Array.from(randomBytes(CHALLENGE_SIZE_BYTES));
  const expiresAt = new Date(clock().getTime() + CHALLENGE_MILLISECONDS);
  const _id = hashOf(Buffer.from(challenge).toString("base64url"));
  const issued = { _id, purpose, userId, sessionId, steppedUp, expiresAt };
  await collections.passkeyChallenges.insertOne(accessProofs.proven("passkeyChallenge", issued));
  return challenge;
}

/**
 * Consumes a challenge, whatever becomes of the response that carries it: one write removes it, so of any number of
 * concurrent calls one gets it. Null if the challenge is unknown, used, expired, or was issued for another purpose or
 * user, in which case it is consumed as well.
 */
export async function takeChallenge(
  { accessProofs, clock, collections }: AuthContext,
  challenge: string,
  { purpose, sessionId, userId }: ChallengeFor,
): Promise<PasskeyChallengeDocument | null> {
  const taken = await collections.passkeyChallenges.findOneAndDelete({ _id: hashOf(challenge) });
  const given = accessProofs.genuine("passkeyChallenge", taken);
  if (given === null || given.expiresAt.getTime() <= clock().getTime()) return null;
  const isFor = given.purpose === purpose && given.userId === userId && given.sessionId === sessionId;
  return isFor ? given : null;
}

/** Hashes a challenge, so that the database and its logs never hold a valid one. */
const hashOf = (challenge: string): string => createHash("sha256").update(challenge).digest("base64url");
