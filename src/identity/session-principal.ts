import type { Role } from "../contract/types.ts";
import type {
  AuthenticationMethod,
  OrganizationDocument,
  UserDocument,
} from "../store/identity-documents.ts";
import type { Binding } from "../domain/binding.ts";

/** Person behind a session, as the database has it at this request. */
export interface SessionPrincipal {
  readonly type: "session";
  readonly sessionId: string;
  readonly userId: string;
  readonly organizationId: string;
  readonly email: string;
  readonly name: string;
  /** The role of this moment, whatever the token says. */
  readonly role: Role;
  /** Likewise. */
  readonly binding: Binding;
  readonly organization: OrganizationDocument;
  readonly signedInAt: Date;
  readonly amr: readonly AuthenticationMethod[];
  readonly stepUpExpiresAt: Date | null;
  /** Their organization requires a second factor, and they have none: they can do nothing but enrol one. */
  readonly mustEnrol: boolean;
}

/** Returns the epoch that a session of theirs must have been begun under, or been taken on to, to be alive. */
export const epochOf = ({ sessionsEpoch = 0 }: UserDocument): number => sessionsEpoch;

/** Whether the organization's provider is their only way in. An owner keeps the others, in case the provider fails. */
export const isBehindSso = ({ role, ssoRequired }: UserDocument): boolean =>
  ssoRequired === true && role !== "owner";

/** Time after a sign-in in which its session may enrol a first second factor. */
const FRESH_SIGN_IN_MILLISECONDS = 5 * 60 * 1000;

/** Whether the person signed in just now; no refresh makes it so again. */
export const isFreshlySignedIn = ({ signedInAt }: SessionPrincipal, now: Date): boolean =>
  now.getTime() - signedInAt.getTime() < FRESH_SIGN_IN_MILLISECONDS;

/** Whether a session may do what needs step-up; at the instant of expiry it no longer may. */
export const isSteppedUp = (principal: SessionPrincipal, now: Date): boolean =>
  principal.stepUpExpiresAt !== null && now.getTime() < principal.stepUpExpiresAt.getTime();
