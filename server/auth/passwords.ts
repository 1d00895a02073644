import { randomBytes } from "node:crypto";
import { hash, verify } from "@node-rs/argon2";
import { isGuessable } from "./password-strength.ts";

export const PASSWORD_MIN_CHARACTERS = 12;
export const PASSWORD_MAX_BYTES = 1024;

/** OWASP's first choice for Argon2id, which is this library's default algorithm. About 30 ms on a small server. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/**
 * What is wrong with a password that somebody chooses, in words for the person, or null. What
 * everybody knows of the person (e-mail, names) makes a password easy to guess.
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

/** What is wrong with its length alone. */
export function passwordIssue(password: string): string | null {
  const text = prepare(password);
  if (Array.from(text).length < PASSWORD_MIN_CHARACTERS) {
    return `The password must have at least ${PASSWORD_MIN_CHARACTERS} characters.`;
  }
  return isTooLong(text) ? `The password must have at most ${PASSWORD_MAX_BYTES} bytes.` : null;
}

/** Hashes a password that `chosenPasswordIssue` has nothing against. */
export const hashPassword = (password: string): Promise<string> => hash(prepare(password), PARAMETERS);

/** Compares passwords in the same time whether there is a user or not (user enumeration). */
export class PasswordVerifier {
  readonly #nobodysHash: string;

  private constructor(nobodysHash: string) {
    this.#nobodysHash = nobodysHash;
  }

  /** Makes the hash that stands in for an unknown user's, once and before the first sign-in. */
  static async create(): Promise<PasswordVerifier> {
    return new PasswordVerifier(await hashPassword(randomBytes(32).toString("base64url")));
  }

  /** False for a null hash, after the same work. */
  async matches(passwordHash: string | null, password: string): Promise<boolean> {
    const text = prepare(password);
    // No stored password is that long; hashing it would be work for nothing, but a quick answer would be a sign.
    const isRight = await verify(passwordHash ?? this.#nobodysHash, isTooLong(text) ? "" : text);
    return isRight && passwordHash !== null && !isTooLong(text);
  }
}

const isTooLong = (text: string): boolean => Buffer.byteLength(text, "utf8") > PASSWORD_MAX_BYTES;

/** One keyboard sends é as one character, another as two (RFC 8265, OpaqueString). */
const prepare = (password: string): string => password.normalize("NFC");
