import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { hash, verify } from "@node-rs/argon2";
import type { Db } from "mongodb";
import { readOrCreateSetting } from "../secrets/settings.ts";
import { BoundedWork } from "../lib/bounded-work.ts";
import { normalizeEmail } from "./email.ts";
import { isGuessable } from "./password-strength.ts";

export const PASSWORD_MIN_CHARACTERS = 12;
export const PASSWORD_MAX_BYTES = 1024;

/** Stands for the hash of a person who has no password: equals none. */
export const NO_PASSWORD = "";

/** Cost of a hash by Argon2id; the memory is in KiB. */
export interface PasswordCost {
  readonly memoryCost: number;
  readonly timeCost: number;
  readonly parallelism: number;
}

/** OWASP's first choice for Argon2id, which is this library's default algorithm. About 30 ms on a small server. */
export const PASSWORD_COST: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/**
 * Returns what is wrong with a password that a user chooses, in words for the person, or null. What everybody knows
 * of the person (e-mail, names) makes a password easy to guess. Throws `TooMuchWork` while too many are being judged.
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

/** Returns what is wrong with its length alone. */
export function passwordIssue(password: string): string | null {
  const text = prepare(password);
  if (Array.from(text).length < PASSWORD_MIN_CHARACTERS) {
    return `The password must have at least ${PASSWORD_MIN_CHARACTERS} characters.`;
  }
  return isTooLong(text) ? `The password must have at most ${PASSWORD_MAX_BYTES} bytes.` : null;
}

/**
 * Hashes of this process at once, each with 19 MiB, on two of libuv's four threads: the others stay free for look-ups of names
 * and files. Those that wait are some tenths of a second's work; further ones are refused as unavailable.
 */
const hashing = new BoundedWork({ atOnceMax: 2, waitingMax: 32, waitMs: 2_000 });

const SALTS_SETTING = "password-salts";
const SALT_SIZE_BYTES = 16;

/**
 * Hashes passwords, and compares them. The salt follows from the e-mail, keyed by a random value of this database: so one hash tells
 * which accounts of an address a password fits, however many there are, and an unknown address costs exactly the same. No
 * salt is known before the database is, and no two addresses share one.
 */
export class Passwords {
  readonly #salts: string;
  readonly #cost: PasswordCost;

  private constructor(salts: string, cost: PasswordCost) {
    this.#salts = salts;
    this.#cost = cost;
  }

  /**
   * Opens the passwords of a database. Only tests set a cost: a password fits only where it is hashed at the cost of
   * its hash.
   */
  static async on(db: Db, now: Date = new Date(), cost = PASSWORD_COST): Promise<Passwords> {
    const { value } = await readOrCreateSetting(db, SALTS_SETTING, () => ({
      value: randomBytes(32).toString("base64url"),
      createdAt: now,
    }));
    return new Passwords(value, cost);
  }

  /**
   * Argon2id of the password of the user with this e-mail, in the PHC string format. Throws `TooMuchWork` while too many are being
   * hashed.
   */
  async hash(email: string, password: string): Promise<string> {
    const text = prepare(password);
    const mac = createHmac("sha256", this.#salts).update(normalizeEmail(email));
    const salt = mac.digest().subarray(0, SALT_SIZE_BYTES);
    // Stored passwords are never that long, or empty; hashing it would be work for nothing, but a quick answer would
    // be a sign.
    return await hashing.run(() => hash(isTooLong(text) ? "" : text, { ...this.#cost, salt }));
  }

  /** Whether a password is that of this hash, whatever its salt. Throws `TooMuchWork` as `hash` does. */
  async matches(passwordHash: string, password: string): Promise<boolean> {
    const text = prepare(password);
    if (passwordHash === NO_PASSWORD || isTooLong(text)) return false;
    return await hashing.run(() => verify(passwordHash, text));
  }
}

/** Whether two hashes of one address' passwords are of the same password. */
export function isSamePassword(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

const isTooLong = (text: string): boolean => Buffer.byteLength(text, "utf8") > PASSWORD_MAX_BYTES;

/** Unifies what one keyboard sends as one character and another as two, such as é (RFC 8265, OpaqueString). */
const prepare = (password: string): string => password.normalize("NFC");
