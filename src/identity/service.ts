import type { AuthenticationResponse, CreationOptions, RequestOptions } from "../contract/webauthn.ts";
import { type Refusal, refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { AuditedWrites, NoteAffected } from "../audit/notes.ts";
import { createAuthContext, type AuthContext, type AuthDeps, type WritingContext } from "./context.ts";
import type {
  AuthCollections,
  InviteDocument,
  PasskeyDocument,
  SessionDocument,
  UserDocument,
} from "../store/identity-documents.ts";
import {
  acceptInvite,
  checkInvite,
  type ShownInvite,
  type AcceptInviteInput,
  createInvite,
  type CreatedInvite,
  type CreateInviteInput,
  revokeInvite,
} from "./invites.ts";
import {
  changeRole,
  type KeysOnLeaving,
  memberViews,
  removeMember,
  type Rights,
  type RoleChanged,
} from "./members.ts";
import {
  changeOrganizationSettings,
  type OrganizationSettings,
  type SettingsChanged,
} from "./organization-settings.ts";
import { changeNotifications, type Notifications, ownNotifications } from "./notifications.ts";
import { endOtherSessions, endOwnSession, ownSessions } from "./own-sessions.ts";
import { passkeySignInOptions, signInWithPasskey } from "./passkey-sign-in.ts";
import {
  enrollPasskey,
  type EnrollPasskeyInput,
  passkeyOptions,
  removePasskey,
  renamePasskey,
} from "./passkeys.ts";
import { changePassword, type PasswordChange, type SessionsEnded } from "./password-change.ts";
import type { SessionPrincipal } from "./session-principal.ts";
import { authenticateSession, refreshSession, type SignedIn, signOut } from "./sessions.ts";
import { isSetUpToken, setUp, type SetUpInput, setUpToken } from "./set-up.ts";
import { signIn, type SignInInput } from "./sign-in.ts";
import {
  type BegunSso,
  beginSso,
  endBySso,
  finishSso,
  type FinishSsoInput,
  type SsoBeginning,
} from "./sso/sign-in.ts";
import { judgeSso, readSso, removeSso, setSso, type SsoChoice } from "./sso/settings.ts";
import type { SsoDocument } from "../store/sso-documents.ts";
import { stepUp, type StepUpInput, stepUpOptions } from "./step-up.ts";
import { confirmTotp, enrollTotp, type TotpEnrolment } from "./totp-enrolment.ts";
import {
  factorEnrolment,
  type FactorEnrolment,
  organizationView,
  type OrganizationView,
  userView,
  type UserView,
} from "./views.ts";

export interface Me {
  readonly user: UserView;
  readonly organization: OrganizationView;
  readonly secondFactorEnrolment: FactorEnrolment;
}

/** People and their sessions, apart from HTTP: operations that only read, or leave nothing but a challenge. */
export interface AuthService {
  /** Collections, used only for lists. */
  readonly collections: AuthCollections;
  /** Returns the operations that change something, on behalf of one request. */
  writing(audit: AuditedWrites): AuthWrites;
  /** `now` defaults to the clock's time. */
  authenticateSession(token: string, now?: Date): Promise<Result<SessionPrincipal>>;
  me(principal: SessionPrincipal): Promise<Result<Me>>;
  sessions(principal: SessionPrincipal): Promise<Result<readonly SessionDocument[]>>;
  notifications(principal: SessionPrincipal): Promise<Result<Notifications>>;
  passkeyOptions(principal: SessionPrincipal): Promise<Result<CreationOptions>>;
  passkeySignInOptions(): Promise<RequestOptions>;
  stepUpOptions(principal: SessionPrincipal): Promise<Result<RequestOptions>>;
  /** Null once the service is set up. */
  setUpToken(): Promise<string | null>;
  /** Whether the token is that of an open set-up. */
  isSetUpToken(token: string): Promise<boolean>;
  checkInvite(token: string): Promise<Result<ShownInvite>>;
  sso(organizationId: string): Promise<SsoDocument | null>;
  /** Returns what is wrong with a provider and domains named by an owner, or null. */
  judgeSso(principal: SessionPrincipal, choice: SsoChoice): Promise<Refusal | null>;
  beginSso(by: SsoBeginning): Promise<Result<BegunSso>>;
  memberViews(members: readonly UserDocument[]): Promise<UserView[]>;
}

/** Operations that change people, their sessions or their organization, each with its entry in the audit log. */
export interface AuthWrites {
  signIn(input: SignInInput, noteAffected?: NoteAffected): Promise<Result<SignedIn>>;
  signOut(principal: SessionPrincipal): Promise<Result<null>>;
  refresh(input: { readonly refreshToken: string }, noteAffected?: NoteAffected): Promise<Result<SignedIn>>;
  changePassword(principal: SessionPrincipal, input: PasswordChange): Promise<Result<SessionsEnded>>;
  endSession(principal: SessionPrincipal, id: string): Promise<Result<null>>;
  endOtherSessions(principal: SessionPrincipal): Promise<Result<SessionsEnded>>;
  changeNotifications(
    principal: SessionPrincipal,
    notifications: Pick<Notifications, "approvalMails">,
  ): Promise<Result<Notifications>>;
  changeOrganizationSettings(
    principal: SessionPrincipal,
    settings: OrganizationSettings,
  ): Promise<Result<SettingsChanged>>;
  enrollTotp(principal: SessionPrincipal): Promise<Result<TotpEnrolment>>;
  confirmTotp(
    principal: SessionPrincipal,
    input: { readonly code: string },
  ): Promise<Result<{ readonly user: UserView }>>;
  enrollPasskey(principal: SessionPrincipal, input: EnrollPasskeyInput): Promise<Result<PasskeyDocument>>;
  renamePasskey(principal: SessionPrincipal, id: string, name: string): Promise<Result<PasskeyDocument>>;
  removePasskey(principal: SessionPrincipal, id: string): Promise<Result<null>>;
  signInWithPasskey(
    response: AuthenticationResponse,
    noteAffected?: NoteAffected,
    userAgent?: string | null,
  ): Promise<Result<SignedIn>>;
  stepUp(
    principal: SessionPrincipal,
    input: StepUpInput,
  ): Promise<Result<{ readonly stepUpExpiresAt: string }>>;
  setUp(input: SetUpInput): Promise<Result<SignedIn>>;
  changeRole(
    principal: SessionPrincipal,
    memberId: string,
    rights: Rights,
    keys?: KeysOnLeaving,
  ): Promise<Result<RoleChanged>>;
  removeMember(principal: SessionPrincipal, memberId: string, keys?: KeysOnLeaving): Promise<Result<null>>;
  createInvite(principal: SessionPrincipal, input: CreateInviteInput): Promise<Result<CreatedInvite>>;
  revokeInvite(principal: SessionPrincipal, id: string): Promise<Result<InviteDocument>>;
  acceptInvite(input: AcceptInviteInput): Promise<Result<SignedIn>>;
  setSso(principal: SessionPrincipal, choice: SsoChoice): Promise<Result<SsoDocument>>;
  removeSso(principal: SessionPrincipal): Promise<Result<null>>;
  finishSso(input: FinishSsoInput, noteAffected: NoteAffected): Promise<Result<SignedIn>>;
  endBySso(token: string): Promise<Result<null>>;
}

/** Requires `verifyMasterKey` and `ensureIndexes`. */
export async function createAuthService(deps: AuthDeps): Promise<AuthService> {
  const context = await createAuthContext(deps);
  return {
    collections: context.collections,
    writing: ({ transaction }) => writesIn({ ...context, transaction }),
    authenticateSession: (token, now = context.clock()) => authenticateSession(context, token, now),
    me: (principal) => me(context, principal),
    sessions: (principal) => ownSessions(context, principal),
    notifications: (principal) => ownNotifications(context, principal),
    passkeyOptions: (principal) => passkeyOptions(context, principal),
    passkeySignInOptions: () => passkeySignInOptions(context),
    stepUpOptions: (principal) => stepUpOptions(context, principal),
    setUpToken: () => setUpToken(context),
    isSetUpToken: (token) => isSetUpToken(context, token),
    checkInvite: (token) => checkInvite(context, token),
    sso: (organizationId) => readSso(context, organizationId),
    judgeSso: (principal, choice) => judgeSso(context, principal, choice),
    beginSso: (by) => beginSso(context, by),
    memberViews: (members) => memberViews(context, members),
  };
}

const writesIn = (context: WritingContext): AuthWrites => ({
  signIn: (input, noteAffected) => signIn(context, input, noteAffected),
  signOut: (principal) => signOut(context, principal),
  refresh: ({ refreshToken }, noteAffected) =>
    refreshSession(context, refreshToken, context.clock(), noteAffected),
  changePassword: (principal, input) => changePassword(context, principal, input),
  endSession: (principal, id) => endOwnSession(context, principal, id),
  endOtherSessions: (principal) => endOtherSessions(context, principal),
  changeNotifications: (principal, notifications) => changeNotifications(context, principal, notifications),
  changeOrganizationSettings: (principal, settings) =>
    changeOrganizationSettings(context, principal, settings),
  enrollTotp: (principal) => enrollTotp(context, principal),
  confirmTotp: (principal, { code }) => confirmTotp(context, principal, code),
  enrollPasskey: (principal, input) => enrollPasskey(context, principal, input),
  renamePasskey: (principal, id, name) => renamePasskey(context, principal, id, name),
  removePasskey: (principal, id) => removePasskey(context, principal, id),
  signInWithPasskey: (response, noteAffected, userAgent) =>
    signInWithPasskey(context, response, noteAffected, userAgent),
  stepUp: (principal, input) => stepUp(context, principal, input),
  setUp: (input) => setUp(context, input),
  changeRole: (principal, memberId, rights, keys) => changeRole(context, principal, memberId, rights, keys),
  removeMember: (principal, memberId, keys) => removeMember(context, principal, memberId, keys),
  createInvite: (principal, input) => createInvite(context, principal, input),
  revokeInvite: (principal, id) => revokeInvite(context, principal, id),
  acceptInvite: (input) => acceptInvite(context, input),
  setSso: (principal, choice) => setSso(context, principal, choice),
  removeSso: (principal) => removeSso(context, principal),
  finishSso: (input, noteAffected) => finishSso(context, input, noteAffected),
  endBySso: (token) => endBySso(context, token),
});

async function me(context: AuthContext, principal: SessionPrincipal): Promise<Result<Me>> {
  const [user, factors] = await Promise.all([
    context.collections.users.findOne({ _id: principal.userId }),
    context.collections.factors.find({ userId: principal.userId }).toArray(),
  ]);
  if (user === null) return refused(refusal("UNAUTHORIZED"));
  return ok({
    user: userView(user, factors),
    organization: organizationView(principal.organization),
    secondFactorEnrolment: factorEnrolment(user, factors),
  });
}
