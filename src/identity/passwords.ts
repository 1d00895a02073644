import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { hash, verify } from "@node-rs/argon2";
import type { Db } from "mongodb";
import { readOrCreateSetting } from "../secrets/settings.ts";
import { BoundedWork } from "../lib/bounded-work.ts";
import { normalizeEmail } from "./email.ts";
import { isGuessable } from "./password-strength.ts";

export const PASSWORD_MIN_CHARACTERS = 12;
export const PASSWORD_MAX_BYTES = 1024;

/** Stands for the hash of a person without a password; matches none. */
export const NO_PASSWORD = "";

/** Cost of an Argon2id hash; memory in KiB. */
export interface PasswordCost {
  readonly memoryCost: number;
  readonly timeCost: number;
  readonly parallelism: number;
}

/**
 * OWASP's first recommendation for Argon2id, which is this library's default algorithm. About 30 ms on a small server.
 */
export const PASSWORD_COST: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/**
 * Returns what is wrong with a password that a user chooses, in words for that person, or null. Widely known facts
 * about the person (e-mail, names) make a password easy to guess. Throws `TooMuchWork` while too many passwords are
 * being judged.
 */
export async function chosenPasswordIssue(
  password: string,
  aboutThePerson: readonly string[],
): Promise<string | null> {
  const issue = passwordIssue(password);
  if (issue !== null) return issue;
  const guessable = await isGuessable(prepare(password), aboutThePerson);
  return guessable ? "The password is too easy to guess; a few unrelated words make a good one." : null;
}

/** Returns what is wrong with a password's length, or null. */
export function passwordIssue(password: string): string | null {
  const text = prepare(password);
  if (Array.from(text).length < PASSWORD_MIN_CHARACTERS) {
    return `The password must have at least ${PASSWORD_MIN_CHARACTERS} characters.`;
  }
  return isTooLong(text) ? `The password must have at most ${PASSWORD_MAX_BYTES} bytes.` : null;
}

/**
 * Limits concurrent hashes per process, each with 19 MiB, to two of libuv's four threads: the other threads stay free
 * for DNS and file access. A full queue is some tenths of a second's work; further hashes are refused as unavailable.
 */
const hashing = new BoundedWork({ atOnceMax: 2, waitingMax: 32, waitMs: 2_000 });

const SALTS_SETTING = "password-salts";
const SALT_SIZE_BYTES = 16;

/**
 * Hashes and compares passwords. The salt is derived from the e-mail with a random key of this database, so one hash
 * tells which accounts of an address a password fits, however many there are, and an unknown address costs exactly the
 * same. No salt is known before the database is, and no two addresses share one.
 */
export class Passwords {
  readonly #salts: string;
  readonly #cost: PasswordCost;

  private constructor(salts: string, cost: PasswordCost) {
    this.#salts = salts;
    this.#cost = cost;
  }

  /**
   * Opens the passwords of a database. Only tests set a cost: a password matches only at the cost of its stored hash.
   */
  static async on(db: Db, now: Date = new Date(), cost = PASSWORD_COST): Promise<Passwords> {
    const { value } = await readOrCreateSetting(db, SALTS_SETTING, () => ({
      value: randomBytes(32).toString("base64url"),
      createdAt: now,
    }));
    return new Passwords(value, cost);
  }

  /**
   * Returns the Argon2id hash of a password for this e-mail, in the PHC string format. Throws `TooMuchWork` while too
   * many passwords are being hashed.
   */
  async hash(email: string, password: string): Promise<string> {
    const text = prepare(password);
    const mac = createHmac("sha256", this.#salts).update(normalizeEmail(email));
    const salt = mac.digest().subarray(0, SALT_SIZE_BYTES);
    // Stored passwords are never that long, or empty. Hashing the text would be wasted work, but a quick answer would
    // reveal something.
    return await hashing.run(() => hash(isTooLong(text) ? "" : text, { ...this.#cost, salt }));
  }

  /** Whether a password matches a hash, whatever its salt. Throws `TooMuchWork` like `hash`. */
  async matches(passwordHash: string, password: string): Promise<boolean> {
    const text = prepare(password);
    if (passwordHash === NO_PASSWORD || isTooLong(text)) return false;
    return await hashing.run(() => verify(passwordHash, text));
  }
}

/** Whether two hashes for one address are of the same password. */
export function isSamePassword(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

const isTooLong = (text: string): boolean => Buffer.byteLength(text, "utf8") > PASSWORD_MAX_BYTES;

/**
 * Unifies characters that some keyboards send as one code point and others as two, such as é (RFC 8265, OpaqueString).
 */
const prepare = (password: string): string => password.normalize("NFC");
