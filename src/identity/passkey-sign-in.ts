import type { AuthenticationResponse, RequestOptions } from "../contract/webauthn.ts";
import type { Result } from "../domain/result.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused } from "../domain/result.ts";
import type { NoteAffected } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { UserDocument } from "../store/identity-documents.ts";
import { ceremonies } from "./webauthn.ts";
import { issueChallenge } from "./passkey-challenges.ts";
import { notAccepted, usePasskey } from "./passkey-use.ts";
import type { SignedIn } from "./sessions.ts";
import { isBehindSso } from "./session-principal.ts";
import { beginSession } from "./sign-in.ts";

/** Without user or session, since the user is unknown: valid for any client that answers with a passkey. */
const ANONYMOUS = { purpose: "sign_in", userId: null, sessionId: null } as const;

/** Begins a sign-in by passkey. Names no credentials, so it discloses none. */
export async function passkeySignInOptions(context: AuthContext): Promise<RequestOptions> {
  const challenge = await issueChallenge(context, ANONYMOUS);
  return await (await ceremonies()).assertionOptions(context.relyingParty, challenge, []);
}

/**
 * Signs a person in by a passkey alone. A passkey is two factors, something they have that has verified something they
 * know or are, so no code is needed.
 */
export async function signInWithPasskey(
  context: WritingContext,
  response: AuthenticationResponse,
  noteAffected: NoteAffected = () => undefined,
  userAgent: string | null = null,
): Promise<Result<SignedIn>> {
  const { users } = context.collections;
  // Users as read before the passkey was accepted: if their factors are reset meanwhile, the new session is over when
  // it begins.
  const before: UserDocument[] = [];
  const used = await usePasskey(context, response, ANONYMOUS, ({ userId }, owner) => {
    before.push(owner);
    noteAffected({ organizationId: owner.organizationId, userId, name: owner.name });
  });
  // These codes have status 401 at sign-in and 403 elsewhere.
  if (!used.ok) return refused({ ...used.refusal, status: 401 });
  const { change, passkey } = used.value;
  const { userId } = passkey;
  const user = before.find(({ _id }) => _id === userId);
  // The user was removed before or since.
  if (user === undefined || (await users.findOne({ _id: userId })) === null) {
    return refused({ ...notAccepted().refusal, status: 401 });
  }
  if (isBehindSso(user)) return refused(refusal("SSO_REQUIRED"));
  return ok(await beginSession(context, user, ["pop", "mfa"], userAgent, change));
}
