import type { AuthenticationMethod, OrganizationDocument, Role } from "./documents.ts";

/** Who is behind a session, as the database has it at this request. */
export interface SessionPrincipal {
  readonly type: "session";
  readonly sessionId: string;
  readonly userId: string;
  readonly organizationId: string;
  readonly email: string;
  readonly name: string;
  /** The role of this moment, whatever the token says. */
  readonly role: Role;
  readonly organization: OrganizationDocument;
  readonly signedInAt: Date;
  readonly amr: readonly AuthenticationMethod[];
  readonly stepUpExpiresAt: Date | null;
}

/** Whether a session may do what needs step-up; at the instant of expiry it no longer may. */
export const isSteppedUp = (principal: SessionPrincipal, now: Date): boolean =>
  principal.stepUpExpiresAt !== null && now.getTime() < principal.stepUpExpiresAt.getTime();
