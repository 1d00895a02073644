import { createHmac, type KeyObject } from "node:crypto";
import { isSameText } from "../lib/same-text.ts";
import type { DerivedKey } from "./master-key.ts";

/** A MAC with the id of its master key, as it occurs within tokens: `<id>.<HMAC-SHA-256 in base64url>`. */
export const MAC_PATTERN = "[0-9a-f]{8}\\.[A-Za-z0-9_-]{43}";

export const MADE_UNDER_ANY = /^[0-9a-f]{8}\./;

/** Filter for values made under one master key: MACs and sealed values begin with its id. */
export const madeUnder = (id: string): RegExp => new RegExp(`^${id}\\.`);

/** Returns the HMAC-SHA-256 under a sub-key, as base64url. */
export const hmacSha256 = (key: KeyObject, text: string): string =>
  createHmac("sha256", key).update(text, "utf8").digest("base64url");

/**
 * MACs that name their master key. New ones are made under the newest key; those of every key in use verify, so that a
 * rotation invalidates none.
 */
export class KeyedMacs {
  readonly #keys: readonly DerivedKey[];

  constructor(keys: readonly DerivedKey[]) {
    this.#keys = keys;
  }

  make(text: string): string {
    const [newest] = this.#keys;
    if (newest === undefined) throw new Error("there is no key to make a MAC under");
    newest.requireCurrent?.();
    return macOf(newest, text);
  }

  /** Returns the text's MACs under all keys, newest first: the forms that may be stored. */
  all(text: string): readonly string[] {
    return this.#keys.map((key) => macOf(key, text));
  }

  /** Whether the value is a MAC of the text. Accepts any type, since an outside history may contain any. */
  isMac(text: string, given: unknown): boolean {
    if (typeof given !== "string") return false;
    const key = this.#keys.find(({ id }) => given.startsWith(`${id}.`));
    return key !== undefined && isSameText(macOf(key, text), given);
  }

  /** Returns the MAC under the newest key if the given one is genuine, else null. */
  remake(text: string, given: string): string | null {
    return this.isMac(text, given) ? this.make(text) : null;
  }
}

const macOf = ({ id, key }: DerivedKey, text: string): string => `${id}.${hmacSha256(key, text)}`;
