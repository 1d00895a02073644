import type { AuthenticationResponse, CreationOptions, RequestOptions } from "../../src/contract/webauthn.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuditNotes, Concerns } from "../audit/notes.ts";
import { createAuthContext, type AuthContext, type AuthDeps } from "./context.ts";
import type { AuthCollections, InviteDocument, PasskeyDocument, Role, UserDocument } from "./documents.ts";
import {
  acceptInvite,
  type AcceptInviteInput,
  createInvite,
  type CreatedInvite,
  revokeInvite,
} from "./invites.ts";
import { changeRole, memberViews, removeMember } from "./members.ts";
import { passkeySignInOptions, signInWithPasskey } from "./passkey-sign-in.ts";
import {
  enrollPasskey,
  type EnrollPasskeyInput,
  passkeyOptions,
  removePasskey,
  renamePasskey,
} from "./passkeys.ts";
import type { SessionPrincipal } from "./principal.ts";
import { authenticateSession, refreshSession, revokeSession, type SignedIn } from "./sessions.ts";
import { isSetUpToken, setUp, type SetUpInput, setUpToken } from "./set-up.ts";
import { signIn, type SignInInput } from "./sign-in.ts";
import { stepUp, type StepUpInput, stepUpOptions } from "./step-up.ts";
import { confirmTotp, enrollTotp, type TotpEnrolment } from "./totp-enrolment.ts";
import { organizationView, userView, type OrganizationView, type UserView } from "./views.ts";

export interface Me {
  readonly user: UserView;
  readonly organization: OrganizationView;
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
  signInWithPasskey(response: AuthenticationResponse, concerns?: Concerns): Promise<Result<SignedIn>>;
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
  ): Promise<Result<UserView>>;
  removeMember(
    principal: SessionPrincipal,
    memberId: string,
    audit?: Pick<AuditNotes, "change">,
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
    enrollTotp: (principal) => enrollTotp(context, principal),
    confirmTotp: (principal, { code }) => confirmTotp(context, principal, code),
    passkeyOptions: (principal) => passkeyOptions(context, principal),
    enrollPasskey: (principal, input) => enrollPasskey(context, principal, input),
    renamePasskey: (principal, id, name) => renamePasskey(context, principal, id, name),
    removePasskey: (principal, id) => removePasskey(context, principal, id),
    passkeySignInOptions: () => passkeySignInOptions(context),
    signInWithPasskey: (response, concerns) => signInWithPasskey(context, response, concerns),
    stepUpOptions: (principal) => stepUpOptions(context, principal),
    stepUp: (principal, input) => stepUp(context, principal, input),
    setUpToken: () => setUpToken(context),
    isSetUpToken: (token) => isSetUpToken(context, token),
    setUp: (input) => setUp(context, input),
    memberViews: (members) => memberViews(context, members),
    changeRole: (principal, memberId, role, audit) => changeRole(context, principal, memberId, role, audit),
    removeMember: (principal, memberId, audit) => removeMember(context, principal, memberId, audit),
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
  return ok({ user: userView(user, factors), organization: organizationView(principal.organization) });
}
