import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";
import type { RandomBytes } from "../domain/api-key.ts";
import { type DerivedKey, MasterKey } from "./master-key.ts";

const CIPHER = "aes-256-gcm";
const NONCE_SIZE_BYTES = 12;
const TAG_SIZE_BYTES = 16;
/** Part of the authenticated data, so that another format can't be mistaken for this one. */
const VERSION = "v2";
/** `<key id>.<nonce>.<ciphertext and tag>`, base64url: 12 bytes are 16 characters, 16 bytes or more are at least 22. */
const FORMAT = /^([0-9a-f]{8})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{22,})$/;

/** Purposes of stored sealed values, which `rotate-master-key` seals again. */
export type StoredPurpose =
  | "session-signing-key"
  | "totp-secret"
  | "webhook-secret"
  | "invite-link"
  | "invite-answer"
  | "kept-keys"
  | "card-issuer"
  | "sso-secret";

export type SealPurpose =
  | StoredPurpose
  | "cursor"
  | "first-agent-key"
  | "forwarded-answer"
  | "forwarded-commands"
  | "oauth-record"
  | "purchase-order"
  | "sso-flow"
  | "purchase-answer";

/** A sealed value that cannot be opened: wrong key, wrong record, or altered. Never reveals its content. */
export class SealError extends Error {
  override readonly name = "SealError";
}

/**
 * Seals secrets at rest with AES-256-GCM, by default under a sub-key of the newest master key, whose id the sealed
 * value names. A sealed value is bound to its purpose and its record: moved to another record, it does not open.
 */
export class Sealer {
  readonly #keys: readonly DerivedKey[];
  readonly #randomBytes: RandomBytes;

  constructor(keys: MasterKey | readonly DerivedKey[], randomSource: RandomBytes = randomBytes) {
    this.#keys = keys instanceof MasterKey ? keys.deriveKeys("sealing") : keys;
    this.#randomBytes = randomSource;
  }

  seal(purpose: SealPurpose, recordId: string, plaintext: string): string {
    const [newest] = this.#keys;
    if (newest === undefined) throw new Error("there is no key to seal under");
    newest.requireCurrent?.();
    const nonce = this.#randomBytes(NONCE_SIZE_BYTES);
    const cipher = createCipheriv(CIPHER, newest.key, nonce, { authTagLength: TAG_SIZE_BYTES });
    cipher.setAAD(additionalData(purpose, recordId));
    const sealed = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `${newest.id}.${Buffer.from(nonce).toString("base64url")}.${sealed.toString("base64url")}`;
  }

  /** Returns null for what `open` would refuse. */
  tryOpen(purpose: SealPurpose, recordId: string, sealed: string): string | null {
    try {
      return this.open(purpose, recordId, sealed);
    } catch (error) {
      if (error instanceof SealError) return null;
      throw error;
    }
  }

  /** Throws `SealError`. */
  open(purpose: SealPurpose, recordId: string, sealed: string): string {
    const [, id, nonce, body] = FORMAT.exec(sealed) ?? [];
    if (id === undefined || nonce === undefined || body === undefined) {
      throw new SealError(`A sealed value (${purpose}) is malformed.`);
    }
    const key = this.#keys.find((each) => each.id === id)?.key;
    if (key === undefined) {
      throw new SealError(`A sealed value (${purpose}) needs the master key ${id}, which is not there.`);
    }
    try {
      return decrypt(
        key,
        additionalData(purpose, recordId),
        Buffer.from(nonce, "base64url"),
        Buffer.from(body, "base64url"),
      );
    } catch {
      // The cause is left out: it adds nothing, and nothing of the value may be disclosed.
      throw new SealError(`A sealed value (${purpose}) does not open with this master key and record.`);
    }
  }
}

function decrypt(key: KeyObject, aad: Buffer, nonce: Buffer, body: Buffer): string {
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_SIZE_BYTES });
  decipher.setAAD(aad);
  decipher.setAuthTag(body.subarray(-TAG_SIZE_BYTES));
  const plaintext = [decipher.update(body.subarray(0, -TAG_SIZE_BYTES)), decipher.final()];
  return Buffer.concat(plaintext).toString("utf8");
}

/** JSON keeps the parts apart: ("a", "bc") and ("ab", "c") differ. */
const additionalData = (purpose: SealPurpose, recordId: string): Buffer =>
  Buffer.from(JSON.stringify([VERSION, purpose, recordId]), "utf8");
