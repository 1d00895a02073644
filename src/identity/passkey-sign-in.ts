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

/** The user is not known yet: it is good for any client, together with a passkey. */
const ANONYMOUS = { purpose: "sign_in", userId: null, sessionId: null } as const;

/** Begins a sign-in by passkey. It names no credentials, so it discloses none. */
export async function passkeySignInOptions(context: AuthContext): Promise<RequestOptions> {
  const challenge = await issueChallenge(context, ANONYMOUS);
  return await (await ceremonies()).assertionOptions(context.relyingParty, challenge, []);
}

/**
 * Signs a person in by a passkey alone: something they have, which has verified something they know or are. That is two factors,
 * so no code is needed.
 */
export async function signInWithPasskey(
  context: WritingContext,
  response: AuthenticationResponse,
  noteAffected: NoteAffected = () => undefined,
  userAgent: string | null = null,
): Promise<Result<SignedIn>> {
  const { users } = context.collections;
  // Users as they were before the passkey was accepted: after a reset of their factors meanwhile their session is
  // over when it begins.
  const before: UserDocument[] = [];
  const used = await usePasskey(context, response, ANONYMOUS, ({ userId }, owner) => {
    before.push(owner);
    noteAffected({ organizationId: owner.organizationId, userId, name: owner.name });
  });
  // These codes have two statuses: 401 at sign-in, 403 elsewhere.
  if (!used.ok) return refused({ ...used.refusal, status: 401 });
  const { change, passkey } = used.value;
  const { userId } = passkey;
  const user = before.find(({ _id }) => _id === userId);
  // Removed before, or since.
  if (user === undefined || (await users.findOne({ _id: userId })) === null) {
    return refused({ ...notAccepted().refusal, status: 401 });
  }
  if (isBehindSso(user)) return refused(refusal("SSO_REQUIRED"));
  return ok(await beginSession(context, user, ["pop", "mfa"], userAgent, change));
}
