import { createCipheriv, createDecipheriv, randomBytes, type KeyObject } from "node:crypto";
import type { RandomBytes } from "../domain/api-key.ts";
import { MasterKey } from "./master-key.ts";

const VERSION = "v1";
const CIPHER = "aes-256-gcm";
const NONCE_SIZE_BYTES = 12;
const TAG_SIZE_BYTES = 16;
/** `v1.<nonce>.<ciphertext and tag>`, base64url: 12 bytes are 16 characters, 16 bytes or more are at least 22. */
const FORMAT = /^v1\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{22,})$/;

/** A sealed value that can't be opened: another key, another record, or altered. Never says what was in it. */
export class SealError extends Error {
  override readonly name = "SealError";
}

/**
 * Seals secrets at rest with AES-256-GCM, by default under a sub-key of the master key. What is
 * sealed is bound to its purpose and its record: moved to another record of the database, it no longer opens.
 */
export class Sealer {
  readonly #key: KeyObject;
  readonly #randomBytes: RandomBytes;

  constructor(key: MasterKey | KeyObject, randomSource: RandomBytes = randomBytes) {
    this.#key = key instanceof MasterKey ? key.deriveKey("sealing") : key;
    this.#randomBytes = randomSource;
  }

  seal(purpose: string, recordId: string, plaintext: string): string {
    const nonce = this.#randomBytes(NONCE_SIZE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_SIZE_BYTES });
    cipher.setAAD(additionalData(purpose, recordId));
    const sealed = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${Buffer.from(nonce).toString("base64url")}.${sealed.toString("base64url")}`;
  }

  /** Throws `SealError`. */
  open(purpose: string, recordId: string, sealed: string): string {
    const [, nonce, body] = FORMAT.exec(sealed) ?? [];
    if (nonce === undefined || body === undefined) {
      throw new SealError(`A sealed value (${purpose}) is not of the format ${VERSION}.`);
    }
    try {
      return this.#decrypt(
        additionalData(purpose, recordId),
        Buffer.from(nonce, "base64url"),
        Buffer.from(body, "base64url"),
      );
    } catch {
      // The cause is left out: it would say nothing more, and nothing of the value may leave here.
      throw new SealError(`A sealed value (${purpose}) does not open with this master key and record.`);
    }
  }

  #decrypt(aad: Buffer, nonce: Buffer, body: Buffer): string {
    const decipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_SIZE_BYTES });
    decipher.setAAD(aad);
    decipher.setAuthTag(body.subarray(-TAG_SIZE_BYTES));
    const plaintext = [decipher.update(body.subarray(0, -TAG_SIZE_BYTES)), decipher.final()];
    return Buffer.concat(plaintext).toString("utf8");
  }
}

/** JSON keeps the parts apart: ("a", "bc") and ("ab", "c") differ. */
const additionalData = (purpose: string, recordId: string): Buffer =>
  Buffer.from(JSON.stringify([VERSION, purpose, recordId]), "utf8");
