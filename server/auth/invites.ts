import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { outranks } from "../authorize.ts";
import { newId } from "../ids.ts";
import { hmacSha256 } from "../secrets/master-key.ts";
import { isDuplicateKey } from "../secrets/settings.ts";
import type { AuditNotes } from "../audit/notes.ts";
import type { AuthContext } from "./context.ts";
import type { InviteDocument, Role, UserDocument } from "./documents.ts";
import { normalizeEmail } from "./email.ts";
import { EMAIL_TAKEN, invalid, newUser } from "./new-user.ts";
import { chosenPasswordIssue } from "./passwords.ts";
import type { SessionPrincipal } from "./principal.ts";
import { openSession, repairProvisioning, type SignedIn } from "./sessions.ts";

/** An invite is valid for 7 days. */
const INVITE_LIFETIME_MILLISECONDS = 7 * 24 * 3600 * 1000;
const TOKEN_SIZE_BYTES = 32;

export interface AcceptInviteInput {
  readonly token: string;
  readonly name: string;
  readonly password: string;
  /** What the client calls itself. */
  readonly userAgent?: string | null;
}

/** An invite with its token, which is shown this once. */
export interface CreatedInvite {
  readonly invite: InviteDocument;
  readonly token: string;
}

/** From when on an invite must have been made to be open now; at the instant of its expiry it no longer is. */
export const openInvitesSince = (now: Date): Date =>
  new Date(now.getTime() - INVITE_LIFETIME_MILLISECONDS + 1);

/** Invites a person; an open invite to the same e-mail is replaced, its token is worth nothing from then on. */
export async function createInvite(
  context: AuthContext,
  principal: SessionPrincipal,
  input: { readonly email: string; readonly role: Role },
): Promise<Result<CreatedInvite>> {
  const { clock, collections, randomBytes, transaction } = context;
  const { organizationId } = principal;
  const now = clock();
  const email = input.email.trim();
  const emailNormalized = normalizeEmail(email);
  const token = Buffer.from(randomBytes(TOKEN_SIZE_BYTES)).toString("base64url");
  const invite: InviteDocument = {
    _id: newId("inv"),
    organizationId,
    email,
    emailNormalized,
    role: input.role,
    tokenHash: hashOf(context, token),
    createdBy: { type: "user", id: principal.userId },
    createdAt: now,
    expiresAt: new Date(now.getTime() + INVITE_LIFETIME_MILLISECONDS),
  };
  return await transaction(async (session) => {
    const member = await collections.users.findOne({ emailNormalized, organizationId }, { session });
    if (member !== null) return refused(invalid("email", "This person is a member already."));
    await collections.invites.deleteMany({ organizationId, emailNormalized }, { session });
    await collections.invites.insertOne(invite, { session });
    return ok({ invite, token });
  });
}

/** Withdraws an open invite. */
export async function revokeInvite(
  { clock, collections }: AuthContext,
  { organizationId }: SessionPrincipal,
  id: string,
): Promise<Result<InviteDocument>> {
  const open = { _id: id, organizationId, expiresAt: { $gt: clock() } };
  const withdrawn = await collections.invites.findOneAndDelete(open);
  return withdrawn === null ? refused(refusal("NOT_FOUND")) : ok(withdrawn);
}

/**
 * Makes the invited person a member and signs them in. Organization, role and e-mail are the
 * invite's. The invite is used up with the same write that makes the member: of any number at once one is let through,
 * and one that is refused can be tried again.
 */
export async function acceptInvite(
  context: AuthContext,
  input: AcceptInviteInput,
  audit?: Pick<AuditNotes, "change" | "on">,
): Promise<Result<SignedIn>> {
  const { clock, collections, randomBytes } = context;
  const now = clock();
  const invite = await collections.invites.findOne(openUnder(context, input.token, now));
  const organization =
    invite === null ? null : await collections.organizations.findOne({ _id: invite.organizationId });
  if (invite === null || organization === null) return refused(refusal("NOT_FOUND"));
  const { email, organizationId, role } = invite;
  const issue = await chosenPasswordIssue(input.password, [email, input.name, organization.name]);
  if (issue !== null) return refused(invalid("password", issue));
  const { name, password } = input;
  const user = await newUser({ organizationId, name, email, role, password }, now, randomBytes);
  const joined = await join(context, invite, user, now);
  if (!joined.ok) return joined;
  audit?.on({ type: "invite", id: invite._id });
  audit?.change({ email, role }, { userId: user._id, role });
  await repairProvisioning(context, organization);
  return ok(await openSession(context, { user: joined.value, organization }, ["pwd"], now, input.userAgent));
}

/**
 * Invite and member in one write. The e-mail is unique over all organizations. An invite is worth what its maker could
 * still give: somebody who was removed or demoted must not come back by one that they kept. It writes the organization's
 * revision, so that nobody joins past a second factor that is being required.
 */
async function join(
  { collections, transaction }: AuthContext,
  invite: InviteDocument,
  user: UserDocument,
  now: Date,
): Promise<Result<UserDocument>> {
  try {
    return await transaction(async (session) => {
      const { _id, createdBy, organizationId, role, tokenHash } = invite;
      const maker = await collections.users.findOne({ _id: createdBy.id, organizationId }, { session });
      if (maker === null || !mayInvite(maker.role, role)) return refused(refusal("NOT_FOUND"));
      const open = { _id, tokenHash, expiresAt: { $gt: now } };
      const { deletedCount } = await collections.invites.deleteOne(open, { session });
      if (deletedCount === 0) return refused(refusal("NOT_FOUND"));
      const next = { $inc: { membersRevision: 1 } };
      const joined = await collections.organizations.findOneAndUpdate({ _id: organizationId }, next, {
        session,
      });
      const isRequired = joined?.requireSecondFactor === true;
      const member: UserDocument = { ...user, ...(isRequired ? { secondFactorRequired: true } : {}) };
      await collections.users.insertOne(member, { session });
      return ok(member);
    });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return refused(invalid("email", EMAIL_TAKEN));
  }
}

/** Only an owner makes owners. */
const mayInvite = (maker: Role, invited: Role): boolean =>
  !outranks(invited === "owner" ? "owner" : "admin", maker);

const openUnder = (context: AuthContext, token: string, now: Date) => ({
  tokenHash: hashOf(context, token),
  expiresAt: { $gt: now },
});

/** Keyed, so that a look-up by it tells nothing about a token by its timing, nor the database's content a token. */
const hashOf = ({ masterKey }: AuthContext, token: string): string =>
  hmacSha256(masterKey.deriveKey("invite-token"), token);
