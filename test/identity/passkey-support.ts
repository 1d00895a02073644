import type { Role } from "../../src/contract/types.ts";
import type { PasskeyDocument } from "../../src/store/identity-documents.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { isSteppedUp } from "../../src/identity/session-principal.ts";
import type {
  AuthenticationResponse,
  CreationOptions,
  RegistrationResponse,
  RequestOptions,
} from "../../src/contract/webauthn.ts";
import type { Result } from "../../src/domain/result.ts";
import { type Ceremony, type KeyKind, SoftwareAuthenticator } from "../support/authenticator.ts";
import { BASE_URL, type Fixture, PASSWORD, valueOf } from "./support.ts";

/** A person with a session, and an authenticator of their own. */
export interface Holder {
  readonly principal: SessionPrincipal;
  readonly authenticator: SoftwareAuthenticator;
}

export const newAuthenticator = (
  options: { readonly counts?: boolean; readonly keys?: KeyKind } = {},
): SoftwareAuthenticator => new SoftwareAuthenticator(BASE_URL, options);

/** The session as the next request finds it. */
export async function again(
  the: Fixture,
  { sessionId, userId }: SessionPrincipal,
): Promise<SessionPrincipal> {
  const session = await the.collections.sessions.findOne({ _id: sessionId });
  const user = await the.collections.users.findOne({ _id: userId });
  const organization = await the.collections.organizations.findOne({ _id: the.organizationId });
  if (session === null || user === null || organization === null)
    throw new Error("There is no such session.");
  return {
    type: "session",
    sessionId,
    userId,
    organizationId: organization._id,
    email: user.email,
    name: user.name,
    role: user.role,
    binding: user.binding ?? { type: "organization" },
    organization,
    signedInAt: session.createdAt,
    amr: session.amr,
    stepUpExpiresAt: session.stepUpExpiresAt,
    mustEnrol: false,
  };
}

let joined = 0;

/** Another person of the same organization, signed in. */
export async function join(the: Fixture, by: SessionPrincipal, role: Role): Promise<SessionPrincipal> {
  joined += 1;
  const email = `p${joined}@example.test`;
  const { token } = valueOf(await the.auth.createInvite(by, { email, role }));
  const session = valueOf(await the.auth.acceptInvite({ token: token ?? "", name: "P", password: PASSWORD }));
  return valueOf(await the.auth.authenticateSession(session.token));
}

/** Enrols a passkey for a user who has none yet, or has stepped up. */
export async function enrol(
  the: Fixture,
  { authenticator, principal }: Holder,
  name = "Laptop",
  told: Partial<Ceremony> = {},
): Promise<PasskeyDocument> {
  const options = valueOf(await the.auth.passkeyOptions(principal));
  const response = authenticator.create(options, told);
  return valueOf(await the.auth.enrollPasskey(principal, { name, response }));
}

/** The owner with a passkey, in a session that was there before it. */
export async function withPasskey(
  the: Fixture,
  principal: SessionPrincipal | null = null,
  options: { readonly counts?: boolean } = {},
): Promise<Holder & { readonly passkey: PasskeyDocument }> {
  const holder = { principal: principal ?? (await the.session()), authenticator: newAuthenticator(options) };
  return { ...holder, passkey: await enrol(the, holder) };
}

/** Steps up by passkey; answers the session as it is then. */
export async function stepUpBy(
  the: Fixture,
  { authenticator, principal }: Holder,
): Promise<SessionPrincipal> {
  const options = valueOf(await the.auth.stepUpOptions(principal));
  valueOf(await the.auth.stepUp(principal, { method: "passkey", response: authenticator.get(options) }));
  const elevated = await again(the, principal);
  if (!isSteppedUp(elevated, the.clock.read())) throw new Error("The session is not stepped up.");
  return elevated;
}

/** One of the three ceremonies, from its options to its end. */
export interface Rite<O, R> {
  readonly name: string;
  /** What a wrong response is refused with, SECOND_FACTOR_INVALID, has this status here. */
  readonly status: 401 | 403;
  begin(principal: SessionPrincipal): Promise<O>;
  respond(authenticator: SoftwareAuthenticator, options: O, told?: Partial<Ceremony>): R;
  finish(principal: SessionPrincipal, response: R): Promise<Result<unknown>>;
}

export const enrolment = (the: () => Fixture): Rite<CreationOptions, RegistrationResponse> => ({
  name: "enrolment",
  status: 403,
  begin: async (principal) => valueOf(await the().auth.passkeyOptions(principal)),
  respond: (authenticator, options, told) => authenticator.create(options, told),
  finish: (principal, response) => the().auth.enrollPasskey(principal, { name: "Laptop", response }),
});

export const signIn = (the: () => Fixture): Rite<RequestOptions, AuthenticationResponse> => ({
  name: "sign-in",
  status: 401,
  begin: () => the().auth.passkeySignInOptions(),
  respond: (authenticator, options, told) => authenticator.get(options, told),
  finish: (_principal, response) => the().auth.signInWithPasskey(response),
});

export const stepUp = (the: () => Fixture): Rite<RequestOptions, AuthenticationResponse> => ({
  name: "step-up",
  status: 403,
  begin: async (principal) => valueOf(await the().auth.stepUpOptions(principal)),
  respond: (authenticator, options, told) => authenticator.get(options, told),
  finish: (principal, response) => the().auth.stepUp(principal, { method: "passkey", response }),
});
