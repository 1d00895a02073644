import { timingSafeEqual } from "node:crypto";
import { generateSync, generateURI, ScureBase32Plugin } from "otplib";
import type { RandomBytes } from "../domain/api-key.ts";

/** RFC 6238 with the parameters that every authenticator app supports: SHA-1, 6 digits, 30 s. */
const STEP_SECONDS = 30;
/** Steps tolerated in either direction. */
const TOLERATED_STEPS = [1, 0, -1] as const;
/** Maximum clock offset, in steps, that a refusal names as the reason. */
const NAMED_STEPS_MAX = 20;
/** Length of a SHA-1 value, recommended by RFC 4226. */
const SECRET_SIZE_BYTES = 20;

const CODE = /^[0-9]{6}$/;

/** Returns a new secret in base32, from injected randomness. */
export const newTotpSecret = (randomBytes: RandomBytes): string =>
  new ScureBase32Plugin().encode(randomBytes(SECRET_SIZE_BYTES), { padding: false });

export const otpauthUrl = (productName: string, account: string, secret: string): string =>
  generateURI({ issuer: productName, label: account, secret });

/** Returns the newest step within tolerance of `now` with this code, or null. The caller checks prior use. */
export function matchingStep(secret: string, code: string, now: Date): number | null {
  if (!CODE.test(code)) return null;
  const current = Math.floor(now.getTime() / 1000 / STEP_SECONDS);
  return (
    TOLERATED_STEPS.map((offset) => current + offset).find((step) => isCodeOf(secret, step, code)) ?? null
  );
}

/**
 * Returns the seconds by which the clock that made a code is ahead of `now`, negative if behind; null if above ten
 * minutes, or for a wrong code.
 */
export function secondsAhead(secret: string, code: string, now: Date): number | null {
  if (!CODE.test(code)) return null;
  const current = Math.floor(now.getTime() / 1000 / STEP_SECONDS);
  for (let steps = 1; steps <= NAMED_STEPS_MAX; steps += 1) {
    if (isCodeOf(secret, current + steps, code)) return steps * STEP_SECONDS;
    if (isCodeOf(secret, current - steps, code)) return -steps * STEP_SECONDS;
  }
  return null;
}

const isCodeOf = (secret: string, step: number, code: string): boolean =>
  isSameCode(generateSync({ secret, epoch: step * STEP_SECONDS }), code);

const isSameCode = (expected: string, given: string): boolean =>
  timingSafeEqual(Buffer.from(expected), Buffer.from(given));
