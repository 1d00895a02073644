import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { inspect } from "node:util";
import { PlainError } from "../lib/plain-error.ts";

/** What a sub-key is for. One purpose never uses another's key, so that nothing made for one passes as the other. */
export type KeyPurpose =
  | "api-key-pepper"
  | "sealing"
  | "key-delivery"
  | "cursor-sealing"
  | "logo-links"
  | "refresh-token"
  | "device-token"
  | "set-up-token"
  | "invite-token"
  | "chain-spender"
  | "audit-log"
  | "payment-proofs"
  | "agent-proofs"
  | "payload-sealing"
  | "payload-authentication"
  | "check-value";

const SALT = "agent-spending-control/1";
const SUB_KEY_SIZE_BYTES = 32;

export const MASTER_KEY_MIN_CHARACTERS = 32;
export const MASTER_KEY_MAX_CHARACTERS = 1024;
/** A random one has them for certain; what has fewer was typed, and can be guessed. */
const DISTINCT_CHARACTERS_MIN = 10;

export type MasterKeyErrorCode =
  "MASTER_KEY_MISSING" | "MASTER_KEY_MALFORMED" | "MASTER_KEY_UNREADABLE" | "MASTER_KEY_MISMATCH";

/** Why the service can't start with this master key. The message is one line for the operator, without the key. */
export class MasterKeyError extends PlainError {
  override readonly name = "MasterKeyError";
  readonly code: MasterKeyErrorCode;

  constructor(code: MasterKeyErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * The one secret outside MongoDB (`MASTER_KEY`), from which every other is derived by
 * HKDF-SHA-256. It never shows itself: printing, logging or serializing it yields a placeholder.
 */
export class MasterKey {
  readonly #key: KeyObject;
  readonly #derived = new Map<KeyPurpose, KeyObject>();
  /** Where it came from, for messages: the name of the variable or the file. */
  readonly source: string;

  private constructor(key: KeyObject, source: string) {
    this.#key = key;
    this.source = source;
  }

  /** Takes the key's text from the environment or the file: 32 to 1,024 printable ASCII characters, at least 10 different ones. */
  static parse(text: string, source: string): MasterKey {
    const trimmed = text.trim();
    if (!/^[\x21-\x7e]*$/.test(trimmed) || !isSensibleLength(trimmed.length)) {
      throw new MasterKeyError(
        "MASTER_KEY_MALFORMED",
        `${source} must be ${MASTER_KEY_MIN_CHARACTERS} to ${MASTER_KEY_MAX_CHARACTERS} printable characters without spaces; make one with: openssl rand -base64 32`,
      );
    }
    if (new Set(trimmed).size < DISTINCT_CHARACTERS_MIN) {
      throw new MasterKeyError(
        "MASTER_KEY_MALFORMED",
        `${source} can be guessed: it has fewer than ${DISTINCT_CHARACTERS_MIN} different characters; make one with: openssl rand -base64 32`,
      );
    }
    return new MasterKey(createSecretKey(trimmed, "utf8"), source);
  }

  /** The sub-key for a purpose: the same one on every server that has the same master key. */
  deriveKey(purpose: KeyPurpose): KeyObject {
    const known = this.#derived.get(purpose);
    if (known !== undefined) return known;
    const bytes = Buffer.from(hkdfSync("sha256", this.#key, SALT, purpose, SUB_KEY_SIZE_BYTES));
    const derived = createSecretKey(bytes);
    bytes.fill(0);
    this.#derived.set(purpose, derived);
    return derived;
  }

  toString(): string {
    return "[master key]";
  }

  toJSON(): string {
    return this.toString();
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

const isSensibleLength = (characters: number): boolean =>
  characters >= MASTER_KEY_MIN_CHARACTERS && characters <= MASTER_KEY_MAX_CHARACTERS;

/** HMAC-SHA-256 under a sub-key, as base64url. */
export const hmacSha256 = (key: KeyObject, text: string): string =>
  createHmac("sha256", key).update(text, "utf8").digest("base64url");
