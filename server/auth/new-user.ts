import type { RandomBytes } from "../../src/domain/api-key.ts";
import { refusal, type Refusal } from "../../src/domain/errors.ts";
import type { Role, UserDocument } from "./documents.ts";
import { normalizeEmail } from "./email.ts";
import { newUuid } from "./ids.ts";
import { hashPassword } from "./passwords.ts";

export interface NewUser {
  readonly organizationId: string;
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  /** One that `chosenPasswordIssue` has nothing against. */
  readonly password: string;
}

/** The record of a person who joins; the only place that makes one. */
export async function newUser(
  { password, ...person }: NewUser,
  now: Date,
  randomBytes: RandomBytes,
): Promise<UserDocument> {
  const email = person.email.trim();
  return {
    _id: newUuid(now, randomBytes),
    ...person,
    email,
    emailNormalized: normalizeEmail(email),
    passwordHash: await hashPassword(password),
    createdAt: now,
  };
}

/** The refusal of one field of what was sent. */
export const invalid = (path: string, message: string): Refusal =>
  refusal("VALIDATION_FAILED", message, { issues: [{ path, message }] });

export const EMAIL_TAKEN = "A user with this e-mail exists already.";
