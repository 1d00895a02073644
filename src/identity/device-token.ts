import type { RandomBytes } from "../domain/api-key.ts";
import { type KeyedMacs, MAC_PATTERN } from "../secrets/keyed-macs.ts";
import type { MasterKey } from "../secrets/master-key.ts";

const DEVICE_ID_SIZE_BYTES = 16;

/** Lifetime of a recognized device after its last sign-in. */
export const DEVICE_TOKEN_LIFETIME_SECONDS = 90 * 24 * 3_600;

/** `<user id>.<device id>-<issued at, Unix seconds>.<signature>` */
const FORMAT = new RegExp(`^([0-9a-f-]{36})\\.([A-Za-z0-9_-]{22})-([0-9]{1,12})\\.(${MAC_PATTERN})$`);

export interface KnownDevice {
  readonly userId: string;
  readonly deviceId: string;
}

/**
 * Tokens by which a device shows that an account was signed in to from it. A token is no credential: it only lets the
 * device's sign-ins to this one account be counted apart from strangers'. Nothing is stored.
 */
export class DeviceTokens {
  readonly #macs: KeyedMacs;
  readonly #randomBytes: RandomBytes;

  constructor(masterKey: MasterKey, randomBytes: RandomBytes) {
    this.#macs = masterKey.macs("device-token");
    this.#randomBytes = randomBytes;
  }

  issue(userId: string, now: Date): string {
    const deviceId = Buffer.from(this.#randomBytes(DEVICE_ID_SIZE_BYTES)).toString("base64url");
    const payload = `${userId}.${deviceId}-${String(Math.floor(now.getTime() / 1_000))}`;
    return `${payload}.${this.#macs.make(payload)}`;
  }

  /** Returns the device of a token issued by the service; null for any other text, or if the token has expired. */
  read(token: string, now: Date): KnownDevice | null {
    const [, userId, deviceId, issuedSeconds, signature] = FORMAT.exec(token) ?? [];
    if (userId === undefined || deviceId === undefined || signature === undefined) return null;
    if (!this.#macs.isMac(`${userId}.${deviceId}-${String(issuedSeconds)}`, signature)) return null;
    const ageSeconds = now.getTime() / 1_000 - Number(issuedSeconds);
    return ageSeconds < DEVICE_TOKEN_LIFETIME_SECONDS ? { userId, deviceId } : null;
  }
}
