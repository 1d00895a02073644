import type { Role } from "../contract/types.ts";
import type {
  AuthenticationMethod,
  OrganizationDocument,
  UserDocument,
} from "../store/identity-documents.ts";
import type { Binding } from "../domain/binding.ts";

/** The person behind a session, as read from the database for this request. */
export interface SessionPrincipal {
  readonly type: "session";
  readonly sessionId: string;
  readonly userId: string;
  readonly organizationId: string;
  readonly email: string;
  readonly name: string;
  /** The current role, whatever the token says. */
  readonly role: Role;
  /** The current binding, whatever the token says. */
  readonly binding: Binding;
  readonly organization: OrganizationDocument;
  readonly signedInAt: Date;
  readonly amr: readonly AuthenticationMethod[];
  readonly stepUpExpiresAt: Date | null;
  /** Whether the organization requires a second factor that the person lacks: enrolling one is all they can do. */
  readonly mustEnrol: boolean;
}

/** Returns the epoch that a live session of the user was begun in or moved to. */
export const epochOf = ({ sessionsEpoch = 0 }: UserDocument): number => sessionsEpoch;

/** Whether the organization's provider is the only way in. An owner keeps the others, in case it fails. */
export const isBehindSso = ({ role, ssoRequired }: UserDocument): boolean =>
  ssoRequired === true && role !== "owner";

/** Time after a sign-in during which the session may enrol a first second factor. */
const FRESH_SIGN_IN_MILLISECONDS = 5 * 60 * 1000;

/** Whether the person signed in recently. Refreshes do not count. */
export const isFreshlySignedIn = ({ signedInAt }: SessionPrincipal, now: Date): boolean =>
  now.getTime() - signedInAt.getTime() < FRESH_SIGN_IN_MILLISECONDS;

/** Whether a session may perform operations that need step-up; at the instant of expiry it no longer may. */
export const isSteppedUp = (principal: SessionPrincipal, now: Date): boolean =>
  principal.stepUpExpiresAt !== null && now.getTime() < principal.stepUpExpiresAt.getTime();
