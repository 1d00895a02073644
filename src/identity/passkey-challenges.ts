import { createHash } from "node:crypto";
import type { AuthContext } from "./context.ts";
import type { PasskeyChallengeDocument, PasskeyPurpose } from "../store/identity-documents.ts";

/** Time that a person has for their device's questions: of a challenge, and of the browser's dialogue. */
export const CHALLENGE_MILLISECONDS = 5 * 60 * 1000;

/** Twice what WebAuthn asks for. */
const CHALLENGE_SIZE_BYTES = 32;

/** Person and purpose that a challenge is for. */
export interface ChallengeFor {
  readonly purpose: PasskeyPurpose;
  /** Null, as the next, at sign-in: the user has no session yet. */
  readonly userId: string | null;
  readonly sessionId: string | null;
}

/** Makes a challenge that is good once, for this alone, for 5 minutes of the service's clock. */
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
 * Uses a challenge up, whatever comes of the response that it came back in: one write removes it, so of any number at
 * once one gets it. Null where it is unknown, used, expired, or was given out for another purpose or user; that uses
 * it up, too.
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

/** Hashes a challenge, so that the database and its logs never hold one that is good. */
const hashOf = (challenge: string): string => createHash("sha256").update(challenge).digest("base64url");
