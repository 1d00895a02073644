import type { RandomBytes } from "../domain/api-key.ts";
import { refusal, type Refusal } from "../domain/errors.ts";
import type { Role } from "../contract/types.ts";
import type { UserDocument } from "../store/identity-documents.ts";
import type { Bound } from "../domain/binding.ts";
import { normalizeEmail } from "./email.ts";
import { newUuid } from "./ids.ts";
import { NO_PASSWORD, type Passwords } from "./passwords.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";

export interface NewUser {
  readonly organizationId: string;
  readonly name: string;
  readonly email: string;
  /** Whether the person has proved that the address receives their mail. */
  readonly emailVerified: boolean;
  readonly role: Role;
  readonly binding?: Bound;
  readonly approvalMails?: true;
  readonly sso?: NonNullable<UserDocument["sso"]>;
  /** A password accepted by `chosenPasswordIssue`; null if the person signs in through a provider. */
  readonly password: string | null;
}

/** Returns the record of a person who joins. The only place that creates one. */
export async function newUser(
  { password, ...person }: NewUser,
  now: Date,
  randomBytes: RandomBytes,
  passwords: Passwords,
  accessProofs: AccessProofs,
): Promise<UserDocument> {
  const email = person.email.trim();
  return accessProofs.proven("user", {
    _id: newUuid(now, randomBytes),
    ...person,
    email,
    emailNormalized: normalizeEmail(email),
    passwordHash: password === null ? NO_PASSWORD : await passwords.hash(email, password),
    createdAt: now,
  });
}

/** Returns the refusal of one field of the input. */
export const invalid = (path: string, message: string): Refusal =>
  refusal("VALIDATION_FAILED", message, { issues: [{ path, message }] });

export const EMAIL_TAKEN = "This organization has a member with this e-mail already.";
