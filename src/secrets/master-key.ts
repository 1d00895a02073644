import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { inspect } from "node:util";
import { PlainError } from "../lib/plain-error.ts";
import type { Unavailable } from "../lib/unavailable.ts";
import { KeyedMacs } from "./keyed-macs.ts";

/** Purpose of a sub-key. No two purposes share a key, so that nothing made for one passes as the other. */
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
  | "pocket-keys"
  | "audit-log"
  | "payment-proofs"
  | "agent-proofs"
  | "access-proofs"
  | "oauth-records"
  | "oauth-cookies"
  | "oauth-signing"
  | "payload-sealing"
  | "server-calls"
  | "payload-authentication"
  | "check-value";

/**
 * Purposes whose sub-keys outlive a retired master key: they verify history, decrypt running workflows' data in
 * Temporal, and control agents' pockets and the sandbox's test money.
 */
export const KEPT_PURPOSES = [
  "audit-log",
  "payment-proofs",
  "payload-sealing",
  "payload-authentication",
  "chain-spender",
  "pocket-keys",
] as const;
export type KeptPurpose = (typeof KEPT_PURPOSES)[number];

const SALT = "agent-spending-control/1";
const SUB_KEY_SIZE_BYTES = 32;
const CHECK_TEXT = "agent-spending-control master key check";
const ID_CHARACTERS = 8;

export const MASTER_KEY_MIN_CHARACTERS = 32;
export const MASTER_KEY_MAX_CHARACTERS = 1024;
/** A random key certainly has this many; one with fewer was typed, and can be guessed. */
const DISTINCT_CHARACTERS_MIN = 10;
const KEYS_MAX = 16;

export type MasterKeyErrorCode =
  | "MASTER_KEY_MISSING"
  | "MASTER_KEY_AMBIGUOUS"
  | "MASTER_KEY_MALFORMED"
  | "MASTER_KEY_UNREADABLE"
  | "MASTER_KEY_MISMATCH";

/** Why the service cannot start with this master key. The message is one line for the operator, without the key. */
export class MasterKeyError extends PlainError {
  override readonly name = "MasterKeyError";
  readonly code: MasterKeyErrorCode;

  constructor(code: MasterKeyErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Error of making a value while it is unknown whether the master key is retired; see `KeyWatch`. */
export class MasterKeyUnconfirmed extends Error implements Unavailable {
  override readonly name = "MasterKeyUnconfirmed";
  readonly isUnavailable = true;
}

export interface DerivedKey {
  readonly id: string;
  readonly key: KeyObject;
  /** Only older proofs under the key count; null if the master key is in use. */
  readonly retiredAt: Date | null;
  /** Called before something new is made under the key. Throws `MasterKeyUnconfirmed`; missing: it may be made. */
  readonly requireCurrent?: () => void;
}

export type KeptKeys = ReadonlyMap<KeyPurpose, KeyObject>;

/** A master key no longer in use, with the sub-keys that verify its proofs. */
export interface RetiredKey {
  readonly id: string;
  readonly retiredAt: Date;
  readonly kept: KeptKeys;
}

/** A master key. Its id is derived from the key, so its values are found whatever an operator calls it. */
class SingleKey {
  readonly #key: KeyObject;
  readonly #derived = new Map<KeyPurpose, KeyObject>();
  readonly id: string;

  constructor(text: string) {
    this.#key = createSecretKey(text, "utf8");
    const check = createHmac("sha256", this.derive("check-value")).update(CHECK_TEXT, "utf8");
    this.id = check.digest("hex").slice(0, ID_CHARACTERS);
  }

  derive(purpose: KeyPurpose): KeyObject {
    const known = this.#derived.get(purpose);
    if (known !== undefined) return known;
    const bytes = Buffer.from(hkdfSync("sha256", this.#key, SALT, purpose, SUB_KEY_SIZE_BYTES));
    const derived = createSecretKey(bytes);
    bytes.fill(0);
    this.#derived.set(purpose, derived);
    return derived;
  }
}

/**
 * The one secret outside MongoDB (`MASTER_KEY`), from which all others are derived by HKDF-SHA-256; during a rotation
 * there are several. The newest makes new values, and each opens and verifies its own. Never exposed: printing, logging
 * or serializing it yields a placeholder.
 */
export class MasterKey {
  readonly #keys: readonly [SingleKey, ...SingleKey[]];
  #retired: readonly RetiredKey[] = [];
  #firstId: string | null = null;
  #mayMake = (): boolean => true;
  /** Source of the key, for messages: the variable's or the file's name. */
  readonly source: string;

  private constructor(keys: readonly [SingleKey, ...SingleKey[]], source: string) {
    this.#keys = keys;
    this.source = source;
  }

  /** Parses one key: 32 to 1,024 printable ASCII characters, at least 10 different ones. */
  static parse(text: string, source: string): MasterKey {
    return new MasterKey([parseKey(text.trim(), source)], source);
  }

  /** Parses several keys, newest first, separated by white space. */
  static parseAll(text: string, source: string): MasterKey {
    const [newest = "", ...older] = text.trim().split(/\s+/);
    if (older.length >= KEYS_MAX) {
      throw new MasterKeyError("MASTER_KEY_MALFORMED", `${source} has more than ${KEYS_MAX} keys.`);
    }
    const keys = [parseKey(newest, source), ...older.map((each) => parseKey(each, source))] as const;
    if (new Set(keys.map(({ id }) => id)).size < keys.length) {
      throw new MasterKeyError("MASTER_KEY_MALFORMED", `${source} has the same key twice.`);
    }
    return new MasterKey([keys[0], ...keys.slice(1)], source);
  }

  /** Ids, newest first. They disclose nothing about the keys. */
  get ids(): readonly string[] {
    return this.#keys.map(({ id }) => id);
  }

  /** Id of the key that makes new values. */
  get newestId(): string {
    return this.#keys[0].id;
  }

  /** Adopts the database's knowledge of master keys: the first one used, and the retired ones. */
  take(firstId: string, retired: readonly RetiredKey[]): void {
    this.#firstId = firstId;
    this.#retired = retired;
  }

  /** Makes something new only while the condition holds; what exists is opened and verified regardless. */
  makeOnlyIf(condition: () => boolean): void {
    this.#mayMake = condition;
  }

  /** Returns the newest sub-key for a purpose: the same on every server with the same master key. */
  deriveKey(purpose: KeyPurpose): KeyObject {
    return this.#keys[0].derive(purpose);
  }

  /** Returns all sub-keys for a purpose, newest first, including kept sub-keys of retired keys. */
  deriveKeys(purpose: KeyPurpose): readonly DerivedKey[] {
    const isRetired = (id: string): boolean => this.#retired.some((each) => each.id === id);
    const inUse = this.#keys.filter(({ id }) => id === this.newestId || !isRetired(id));
    const requireCurrent = (): void => {
      if (!this.#mayMake()) throw new MasterKeyUnconfirmed("the master keys in use could not be read lately");
    };
    const keys = inUse.map((each) => {
      return { id: each.id, key: each.derive(purpose), retiredAt: null, requireCurrent };
    });
    const retired = this.#retired.flatMap(({ id, kept, retiredAt }) => {
      const key = kept.get(purpose);
      return key === undefined || id === this.newestId ? [] : [{ id, key, retiredAt }];
    });
    return [...keys, ...retired];
  }

  /** Returns the sub-key of the database's first key, for what cannot change with a rotation. */
  deriveFirst(purpose: KeptPurpose): KeyObject {
    return this.deriveKeys(purpose).find(({ id }) => id === this.#firstId)?.key ?? this.deriveKey(purpose);
  }

  /** Returns MACs for a purpose, under the keys in use. */
  macs(purpose: KeyPurpose): KeyedMacs {
    return new KeyedMacs(this.deriveKeys(purpose).filter(({ retiredAt }) => retiredAt === null));
  }

  /** Returns the sub-keys that outlive a key; null if the key is not available. */
  keptOf(id: string): KeptKeys | null {
    const key = this.#keys.find((each) => each.id === id);
    return key === undefined ? null : new Map(KEPT_PURPOSES.map((purpose) => [purpose, key.derive(purpose)]));
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

function parseKey(text: string, source: string): SingleKey {
  if (!/^[\x21-\x7e]*$/.test(text) || !isSensibleLength(text.length)) {
    throw new MasterKeyError(
      "MASTER_KEY_MALFORMED",
      `${source} must be ${MASTER_KEY_MIN_CHARACTERS} to ${MASTER_KEY_MAX_CHARACTERS} printable characters without spaces; make one with: openssl rand -base64 32`,
    );
  }
  if (new Set(text).size < DISTINCT_CHARACTERS_MIN) {
    throw new MasterKeyError(
      "MASTER_KEY_MALFORMED",
      `${source} can be guessed: it has fewer than ${DISTINCT_CHARACTERS_MIN} different characters; make one with: openssl rand -base64 32`,
    );
  }
  return new SingleKey(text);
}

const isSensibleLength = (characters: number): boolean =>
  characters >= MASTER_KEY_MIN_CHARACTERS && characters <= MASTER_KEY_MAX_CHARACTERS;
