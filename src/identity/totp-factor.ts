import type { ClientSession, Filter, UpdateFilter } from "mongodb";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { TotpFactorDocument, TotpSecret } from "../store/identity-documents.ts";
import { matchingStep, secondsAhead } from "./totp-code.ts";

/** Wrong codes that lock the factor for 15 minutes. The fifth is still answered as wrong. */
const WRONG_CODES_MAX = 5;
const LOCK_MILLISECONDS = 15 * 60 * 1000;

const SEALING_PURPOSE = "totp-secret";

/** Secret of a factor against which a code is verified. */
export type TotpSlot = "confirmed" | "pending";

export const totpFactorId = (userId: string): string => `totp:${userId}`;

/** Seals a secret, bound to user and secret id: copied to another user's record, it does not open. */
export const sealTotpSecret = (
  context: AuthContext,
  userId: string,
  secretId: string,
  secret: string,
): string => context.sealer.seal(SEALING_PURPOSE, `${userId}/${secretId}`, secret);

export interface TotpRequest {
  readonly userId: string;
  readonly slot: TotpSlot;
  /** The secret to verify against; if another one is in its place, the code is not verified. */
  readonly secretId: string;
  readonly code: string;
  readonly now: Date;
  /** Session of the surrounding transaction. */
  readonly session?: ClientSession;
}

/** Further change made by an accepted code, in the same atomic write that consumes the code. */
export type OnAccepted = (secret: TotpSecret, step: number) => UpdateFilter<TotpFactorDocument>;

/**
 * Verifies a code and consumes it. Every outcome is one conditional write, so that concurrent guesses all count, a code
 * sent several times at once is accepted once, and nothing is accepted once the factor is locked.
 */
export async function spendTotpCode(
  context: AuthContext,
  request: TotpRequest,
  onAccepted: OnAccepted,
): Promise<Result<null>> {
  const { userId, slot, code, now } = request;
  const secret = await readSecret(context, request);
  if (secret === null || isLocked(secret, now)) return notAccepted(secret, now);
  const opened = context.sealer.open(SEALING_PURPOSE, `${userId}/${secret.id}`, secret.sealedSecret);
  const step = matchingStep(opened, code, now);
  // A used code is no guess, so it is refused without being counted.
  if (step !== null && step <= secret.lastUsedStep) return invalid();
  const unlocked = unlockedFilter(userId, slot, secret.id, now);
  if (step === null) {
    const refusedBy = slot === "pending" ? wrongClock(secondsAhead(opened, code, now)) : undefined;
    return await countWrongCode(context, request, unlocked, refusedBy);
  }
  const used = await context.collections.totpFactors.updateOne(
    { ...unlocked, [`${slot}.lastUsedStep`]: { $lt: step } },
    onAccepted(secret, step),
    within(request),
  );
  // Another request used the code, locked the factor or replaced the secret between the read and the write.
  return used.matchedCount === 1 ? ok(null) : notAccepted(await readSecret(context, request), now);
}

/** A change that only consumes the code. */
export const onlyUseCode: OnAccepted = (_secret, step) => ({
  $set: { "confirmed.lastUsedStep": step, "confirmed.wrongCodes": 0, "confirmed.lockedUntil": null },
});

async function countWrongCode(
  context: AuthContext,
  request: TotpRequest,
  unlocked: Filter<TotpFactorDocument>,
  message: string | undefined,
): Promise<Result<null>> {
  const { slot, now } = request;
  const wrongCodes = `${slot}.wrongCodes`;
  const lockedUntil = `${slot}.lockedUntil`;
  const lockEnds = new Date(now.getTime() + LOCK_MILLISECONDS);
  const count = [
    // The filter lets only an expired lock through, after which the count restarts.
    {
      $set: {
        [wrongCodes]: { $cond: [{ $eq: [`$${lockedUntil}`, null] }, { $add: [`$${wrongCodes}`, 1] }, 1] },
      },
    },
    { $set: { [lockedUntil]: { $cond: [{ $gte: [`$${wrongCodes}`, WRONG_CODES_MAX] }, lockEnds, null] } } },
  ];
  const counted = await context.collections.totpFactors.updateOne(unlocked, count, within(request));
  return counted.matchedCount === 1 ? invalid(message) : notAccepted(await readSecret(context, request), now);
}

/** Returns a hint about a wrong clock, for a person who enrols; at a sign-in it would help a guesser. */
function wrongClock(seconds: number | null): string | undefined {
  if (seconds === null) return undefined;
  const off = `${String(Math.abs(seconds))} seconds ${seconds > 0 ? "ahead" : "behind"}`;
  return `The code is of another time: the clock of the device that made it is about ${off}. Let it set its time automatically, then try the next code.`;
}

const unlockedFilter = (
  userId: string,
  slot: TotpSlot,
  secretId: string,
  now: Date,
): Filter<TotpFactorDocument> => ({
  _id: totpFactorId(userId),
  [`${slot}.id`]: secretId,
  [`${slot}.lockedUntil`]: { $not: { $gt: now } },
});

async function readSecret(context: AuthContext, request: TotpRequest): Promise<TotpSecret | null> {
  const _id = totpFactorId(request.userId);
  const factor = await context.collections.totpFactors.findOne({ _id }, within(request));
  const secret = factor?.[request.slot] ?? null;
  return secret?.id === request.secretId ? secret : null;
}

const within = ({ session }: TotpRequest) => (session === undefined ? {} : { session });

const isLocked = (secret: TotpSecret, now: Date): boolean =>
  secret.lockedUntil !== null && now.getTime() < secret.lockedUntil.getTime();

const invalid = (message?: string) => refused(refusal("SECOND_FACTOR_INVALID", message));

/** Refusal if no code could be right; a signed-in person gets an error that says what to do first. */
const NOTHING_TO_VERIFY =
  "There is nothing enrolled that a code could be for; begin with POST /v1/auth/totp.";

export const nothingToVerify = () => invalid(NOTHING_TO_VERIFY);

function notAccepted(secret: TotpSecret | null, now: Date): Result<null> {
  if (secret === null) return nothingToVerify();
  if (secret.lockedUntil === null || !isLocked(secret, now)) return invalid();
  const retryAfterSeconds = Math.ceil((secret.lockedUntil.getTime() - now.getTime()) / 1000);
  return refused(refusal("SECOND_FACTOR_LOCKED", undefined, { retryAfterSeconds }));
}
