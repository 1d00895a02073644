import { createHmac, type KeyObject } from "node:crypto";
import { isSameText } from "../lib/same-text.ts";
import type { DerivedKey } from "./master-key.ts";

/** A MAC with the id of its master key, as it occurs within tokens: `<id>.<HMAC-SHA-256 in base64url>`. */
export const MAC_PATTERN = "[0-9a-f]{8}\\.[A-Za-z0-9_-]{43}";

export const MADE_UNDER_ANY = /^[0-9a-f]{8}\./;

/** Filter for what one master key has made: MACs and sealed values begin with its id. */
export const madeUnder = (id: string): RegExp => new RegExp(`^${id}\\.`);

/** HMAC-SHA-256 under a sub-key, as base64url. */
export const hmacSha256 = (key: KeyObject, text: string): string =>
  createHmac("sha256", key).update(text, "utf8").digest("base64url");

/**
 * MACs that name the master key which they are made under. New ones are made under the newest; those of every key in use
 * verify, so that a rotation breaks none.
 */
export class KeyedMacs {
  readonly #keys: readonly DerivedKey[];

  constructor(keys: readonly DerivedKey[]) {
    this.#keys = keys;
  }

  make(text: string): string {
    const [newest] = this.#keys;
    if (newest === undefined) throw new Error("there is no key to make a MAC under");
    return macOf(newest, text);
  }

  /** The text's MACs under all keys, the newest first: what a store may know it by. */
  all(text: string): readonly string[] {
    return this.#keys.map((key) => macOf(key, text));
  }

  /** Accepts any value, as a history from outside may hold. */
  isMac(text: string, given: unknown): boolean {
    return typeof given === "string" && this.remake(text, given) !== null;
  }

  /** The MAC under the newest key where the given one is genuine; null where it is not. */
  remake(text: string, given: string): string | null {
    const key = this.#keys.find(({ id }) => given.startsWith(`${id}.`));
    return key !== undefined && isSameText(macOf(key, text), given) ? this.make(text) : null;
  }
}

const macOf = ({ id, key }: DerivedKey, text: string): string => `${id}.${hmacSha256(key, text)}`;
