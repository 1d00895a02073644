import { timingSafeEqual, type KeyObject } from "node:crypto";
import type { RandomBytes } from "../domain/api-key.ts";
import { hmacSha256, type MasterKey } from "../secrets/master-key.ts";

const DEVICE_ID_SIZE_BYTES = 16;

/** For how long a device is known after its last sign-in. */
export const DEVICE_TOKEN_LIFETIME_SECONDS = 90 * 24 * 3_600;

/** `<user id>.<device id>-<issued at, Unix seconds>.<signature>` */
const FORMAT = /^([0-9a-f-]{36})\.([A-Za-z0-9_-]{22})-([0-9]{1,12})\.([A-Za-z0-9_-]{43})$/;

/** A device on which a user has signed in to an account. */
export interface KnownDevice {
  readonly userId: string;
  readonly deviceId: string;
}

/**
 * Tokens by which a device shows that an account was signed in to from it. One is no credential: all it does is to let its sign-ins
 * to this one account be counted apart from strangers'. Nothing of it is stored.
 */
export class DeviceTokens {
  readonly #key: KeyObject;
  readonly #randomBytes: RandomBytes;

  constructor(masterKey: MasterKey, randomBytes: RandomBytes) {
    this.#key = masterKey.deriveKey("device-token");
    this.#randomBytes = randomBytes;
  }

  issue(userId: string, now: Date): string {
    const deviceId = Buffer.from(this.#randomBytes(DEVICE_ID_SIZE_BYTES)).toString("base64url");
    const payload = `${userId}.${deviceId}-${String(Math.floor(now.getTime() / 1_000))}`;
    return `${payload}.${hmacSha256(this.#key, payload)}`;
  }

  /** The device that a token of ours is of; null for any other text, and once its time is over. */
  read(token: string, now: Date): KnownDevice | null {
    const [, userId, deviceId, issuedSeconds, signature] = FORMAT.exec(token) ?? [];
    if (userId === undefined || deviceId === undefined || signature === undefined) return null;
    const expected = Buffer.from(hmacSha256(this.#key, `${userId}.${deviceId}-${String(issuedSeconds)}`));
    if (!timingSafeEqual(expected, Buffer.from(signature))) return null;
    const ageSeconds = now.getTime() / 1_000 - Number(issuedSeconds);
    return ageSeconds < DEVICE_TOKEN_LIFETIME_SECONDS ? { userId, deviceId } : null;
  }
}
