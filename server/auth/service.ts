import type { AuthenticationResponse, CreationOptions, RequestOptions } from "../../src/contract/webauthn.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuditNotes, Concerns } from "../audit/notes.ts";
import { createAuthContext, type AuthContext, type AuthDeps } from "./context.ts";
import type {
  AuthCollections,
  InviteDocument,
  PasskeyDocument,
  Role,
  SessionDocument,
  UserDocument,
} from "./documents.ts";
import {
  acceptInvite,
  type AcceptInviteInput,
  createInvite,
  type CreatedInvite,
  revokeInvite,
} from "./invites.ts";
import { changeRole, type KeysOnLeaving, memberViews, removeMember, type RoleChanged } from "./members.ts";
import {
  changeOrganizationSettings,
  type OrganizationSettings,
  type SettingsChanged,
} from "./organization-settings.ts";
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
import type { SessionPrincipal } from "./principal.ts";
import { authenticateSession, refreshSession, revokeSession, type SignedIn } from "./sessions.ts";
import { isSetUpToken, setUp, type SetUpInput, setUpToken } from "./set-up.ts";
import { signIn, type SignInInput } from "./sign-in.ts";
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

/** Humans and their sessions, apart from HTTP. */
export interface AuthService {
  /** For lists alone. */
  readonly collections: AuthCollections;
  /** `now` is the clock's unless given. */
  authenticateSession(token: string, now?: Date): Promise<Result<SessionPrincipal>>;
  signIn(input: SignInInput, concerns?: Concerns): Promise<Result<SignedIn>>;
  signOut(principal: SessionPrincipal): Promise<Result<null>>;
  refresh(input: { readonly refreshToken: string }, concerns?: Concerns): Promise<Result<SignedIn>>;
  me(principal: SessionPrincipal): Promise<Result<Me>>;
  changePassword(principal: SessionPrincipal, input: PasswordChange): Promise<Result<SessionsEnded>>;
  sessions(principal: SessionPrincipal): Promise<Result<readonly SessionDocument[]>>;
  endSession(principal: SessionPrincipal, id: string): Promise<Result<null>>;
  endOtherSessions(principal: SessionPrincipal): Promise<Result<SessionsEnded>>;
  changeOrganizationSettings(
    principal: SessionPrincipal,
    settings: OrganizationSettings,
  ): Promise<Result<SettingsChanged>>;
  enrollTotp(principal: SessionPrincipal): Promise<Result<TotpEnrolment>>;
  confirmTotp(
    principal: SessionPrincipal,
    input: { readonly code: string },
  ): Promise<Result<{ readonly user: UserView }>>;
  passkeyOptions(principal: SessionPrincipal): Promise<Result<CreationOptions>>;
  enrollPasskey(principal: SessionPrincipal, input: EnrollPasskeyInput): Promise<Result<PasskeyDocument>>;
  renamePasskey(principal: SessionPrincipal, id: string, name: string): Promise<Result<PasskeyDocument>>;
  removePasskey(principal: SessionPrincipal, id: string): Promise<Result<null>>;
  passkeySignInOptions(): Promise<RequestOptions>;
  signInWithPasskey(
    response: AuthenticationResponse,
    concerns?: Concerns,
    userAgent?: string | null,
  ): Promise<Result<SignedIn>>;
  stepUpOptions(principal: SessionPrincipal): Promise<Result<RequestOptions>>;
  stepUp(
    principal: SessionPrincipal,
    input: StepUpInput,
  ): Promise<Result<{ readonly stepUpExpiresAt: string }>>;
  /** Null once the service is set up. */
  setUpToken(): Promise<string | null>;
  /** Whether somebody may set the service up with it. */
  isSetUpToken(token: string): Promise<boolean>;
  setUp(input: SetUpInput): Promise<Result<SignedIn>>;
  memberViews(members: readonly UserDocument[]): Promise<UserView[]>;
  changeRole(
    principal: SessionPrincipal,
    memberId: string,
    role: Role,
    audit?: Pick<AuditNotes, "change">,
    keys?: KeysOnLeaving,
  ): Promise<Result<RoleChanged>>;
  removeMember(
    principal: SessionPrincipal,
    memberId: string,
    audit?: Pick<AuditNotes, "change">,
    keys?: KeysOnLeaving,
  ): Promise<Result<null>>;
  createInvite(
    principal: SessionPrincipal,
    input: { readonly email: string; readonly role: Role },
  ): Promise<Result<CreatedInvite>>;
  revokeInvite(principal: SessionPrincipal, id: string): Promise<Result<InviteDocument>>;
  acceptInvite(
    input: AcceptInviteInput,
    audit?: Pick<AuditNotes, "change" | "on">,
  ): Promise<Result<SignedIn>>;
}

/** Call `verifyMasterKey` and `ensureAuthIndexes` before it. */
export async function createAuthService(deps: AuthDeps): Promise<AuthService> {
  const context = await createAuthContext(deps);
  return {
    collections: context.collections,
    authenticateSession: (token, now = context.clock()) => authenticateSession(context, token, now),
    signIn: (input, concerns) => signIn(context, input, concerns),
    signOut: async (principal) => {
      await revokeSession(context, principal.sessionId, "sign_out", context.clock());
      return ok(null);
    },
    refresh: ({ refreshToken }, concerns) => refreshSession(context, refreshToken, context.clock(), concerns),
    me: (principal) => me(context, principal),
    changePassword: (principal, input) => changePassword(context, principal, input),
    sessions: (principal) => ownSessions(context, principal),
    endSession: (principal, id) => endOwnSession(context, principal, id),
    endOtherSessions: (principal) => endOtherSessions(context, principal),
    changeOrganizationSettings: (principal, settings) =>
      changeOrganizationSettings(context, principal, settings),
    enrollTotp: (principal) => enrollTotp(context, principal),
    confirmTotp: (principal, { code }) => confirmTotp(context, principal, code),
    passkeyOptions: (principal) => passkeyOptions(context, principal),
    enrollPasskey: (principal, input) => enrollPasskey(context, principal, input),
    renamePasskey: (principal, id, name) => renamePasskey(context, principal, id, name),
    removePasskey: (principal, id) => removePasskey(context, principal, id),
    passkeySignInOptions: () => passkeySignInOptions(context),
    signInWithPasskey: (response, concerns, userAgent) =>
      signInWithPasskey(context, response, concerns, userAgent),
    stepUpOptions: (principal) => stepUpOptions(context, principal),
    stepUp: (principal, input) => stepUp(context, principal, input),
    setUpToken: () => setUpToken(context),
    isSetUpToken: (token) => isSetUpToken(context, token),
    setUp: (input) => setUp(context, input),
    memberViews: (members) => memberViews(context, members),
    changeRole: (principal, memberId, role, audit, keys) =>
      changeRole(context, principal, memberId, role, audit, keys),
    removeMember: (principal, memberId, audit, keys) =>
      removeMember(context, principal, memberId, audit, keys),
    createInvite: (principal, input) => createInvite(context, principal, input),
    revokeInvite: (principal, id) => revokeInvite(context, principal, id),
    acceptInvite: (input, audit) => acceptInvite(context, input, audit),
  };
}

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
