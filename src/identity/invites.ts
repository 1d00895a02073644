import type { ClientSession } from "mongodb";
import { type Refusal, refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { outranks } from "../domain/roles.ts";
import { newId } from "../lib/ids.ts";
import { definedFields } from "../store/lists.ts";
import { INVITE_LINK_PURPOSE } from "./invite-link.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { changed, type Outcome, unchanged } from "../audit/notes.ts";
import type { AuthContext, Mailing, WritingContext } from "./context.ts";
import type { Role } from "../contract/types.ts";
import type { InviteDocument, UserDocument } from "../store/identity-documents.ts";
import type { Binding } from "../domain/binding.ts";
import { normalizeEmail } from "./email.ts";
import { takeInviteSlot } from "./invite-caps.ts";
import type { InviteAnswer } from "./invite-requests.ts";
import { EMAIL_TAKEN, invalid, newUser } from "./new-user.ts";
import { readSso } from "./sso/settings.ts";
import { ssoOf } from "../store/sso-documents.ts";
import { chosenPasswordIssue } from "./passwords.ts";
import { isSteppedUp, type SessionPrincipal } from "./session-principal.ts";
import {
  newSession,
  type OpenedSession,
  ownerOf,
  type Person,
  repairProvisioning,
  shownOnce,
  type SignedIn,
} from "./sessions.ts";
import { inviteView } from "./views.ts";

const INVITE_LIFETIME_MILLISECONDS = 7 * 24 * 3600 * 1000;
const TOKEN_SIZE_BYTES = 32;

export interface AcceptInviteInput {
  readonly token: string;
  readonly name: string;
  readonly password: string;
  /** User agent as stated by the client. */
  readonly userAgent?: string | null;
}

export interface CreateInviteInput {
  readonly email: string;
  readonly role: Role;
  readonly binding?: Binding | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** An invite as returned to its creator. The token is null if it is mailed instead. */
export interface CreatedInvite extends InviteAnswer {
  /** Whether an earlier call with the same request created the invite. */
  readonly isReplay: boolean;
}

/**
 * Returns the earliest creation time of an invite that is open now; at the instant of its expiry an invite is closed.
 */
export const openInvitesSince = (now: Date): Date =>
  new Date(now.getTime() - INVITE_LIFETIME_MILLISECONDS + 1);

/**
 * Invites a person. An open invite to the same e-mail is replaced and its token becomes void; replacing an owner's
 * invite requires the right to create one, else `ROLE_REQUIRED` or `STEP_UP_REQUIRED`. With mail, the token goes into
 * the mail and nowhere else, so presenting it proves that the address receives mail. A request repeated under its
 * idempotency key gets the first answer, and mails nothing.
 */
export async function createInvite(
  context: WritingContext,
  principal: SessionPrincipal,
  input: CreateInviteInput,
): Promise<Result<CreatedInvite>> {
  const { clock, mailing, transaction, mutex } = context;
  const { organizationId, userId } = principal;
  const { idempotencyKey, ...payload } = input;
  const request = idempotencyKey === undefined ? null : { organizationId, userId, idempotencyKey, payload };
  const { invite, token } = newInvite(context, principal, payload, clock());
  const made = { invite: inviteView(invite), token: mailing === null ? token : null };
  const written = await mutex.run(`invites/${organizationId}`, () =>
    transaction(async (session): Promise<Outcome<Result<CreatedInvite>>> => {
      const before = request === null ? ok(null) : await context.inviteRequests.answered(request, session);
      if (!before.ok) return unchanged(before);
      if (before.value !== null) return unchanged(ok({ ...before.value, isReplay: true }));
      const denied = await write(context, principal, invite, session);
      if (denied !== null) return unchanged(refused(denied));
      if (request !== null) await context.inviteRequests.keep(request, made, invite.createdAt, session);
      const { _id: id, binding, email, role } = invite;
      return changed(ok({ ...made, isReplay: false }), {
        on: { type: "invite", id },
        after: { email, role, ...definedFields({ binding }) },
      });
    }),
  );
  if (mailing === null) return written;
  if (written.ok && !written.value.isReplay) await mailing.begin(invite);
  if (!written.ok && written.refusal.code === "RATE_LIMITED") mailing.onLimited();
  return written;
}

function newInvite(
  context: AuthContext,
  { organizationId, userId }: SessionPrincipal,
  { binding, ...input }: Pick<CreateInviteInput, "email" | "role" | "binding">,
  now: Date,
): { readonly invite: InviteDocument; readonly token: string } {
  const { accessProofs, mailing, randomBytes, sealer } = context;
  const _id = newId("inv");
  const email = input.email.trim();
  const token = Buffer.from(randomBytes(TOKEN_SIZE_BYTES)).toString("base64url");
  const toBeMailed = (by: Mailing): Pick<InviteDocument, "mail" | "mailStartPending"> => {
    const sealedLink = sealer.seal(INVITE_LINK_PURPOSE, _id, by.linkOf(token));
    return { mail: { state: "mailing", sealedLink, endedAt: null }, mailStartPending: true };
  };
  const invite: InviteDocument = accessProofs.proven("invite", {
    _id,
    organizationId,
    email,
    emailNormalized: normalizeEmail(email),
    role: input.role,
    ...(binding === undefined || binding.type === "organization" ? {} : { binding }),
    tokenHash: tokenMacs(context).make(token),
    createdBy: { type: "user", id: userId },
    createdAt: now,
    expiresAt: new Date(now.getTime() + INVITE_LIFETIME_MILLISECONDS),
    ...(mailing === null ? { mail: null } : toBeMailed(mailing)),
  });
  return { invite, token };
}

/** Writes an invite in place of an open one. A refusal leaves nothing written. */
async function write(
  { collections, mailing }: AuthContext,
  principal: SessionPrincipal,
  invite: InviteDocument,
  session: ClientSession,
): Promise<Refusal | null> {
  const { createdAt, emailNormalized, organizationId } = invite;
  const member = await collections.users.findOne({ emailNormalized, organizationId }, { session });
  if (member !== null) return invalid("email", "This person is a member already.");
  const open = { organizationId, emailNormalized, expiresAt: { $gt: createdAt } };
  const replaced = await collections.invites.findOne(open, { session });
  const denied = replaced === null ? null : revokeRefusal(replaced, principal, createdAt);
  if (denied !== null) return denied;
  const over =
    mailing === null ? null : await takeInviteSlot(collections.inviteCounts, invite, createdAt, session);
  if (over !== null) {
    await session.abortTransaction();
    return over;
  }
  await collections.invites.deleteMany({ organizationId, emailNormalized }, { session });
  await collections.invites.insertOne(invite, { session });
  return null;
}

/** Withdraws an open invite; an owner's needs what creating it needs, else `ROLE_REQUIRED` or `STEP_UP_REQUIRED`. */
export async function revokeInvite(
  { clock, collections, transaction }: WritingContext,
  principal: SessionPrincipal,
  id: string,
): Promise<Result<InviteDocument>> {
  const now = clock();
  const open = { _id: id, organizationId: principal.organizationId, expiresAt: { $gt: now } };
  return await transaction<Result<InviteDocument>>(async (session) => {
    const found = await collections.invites.findOne(open, { session });
    if (found === null) return unchanged(refused(refusal("NOT_FOUND")));
    const denied = revokeRefusal(found, principal, now);
    if (denied !== null) return unchanged(refused(denied));
    const { deletedCount } = await collections.invites.deleteOne(open, { session });
    if (deletedCount === 0) return unchanged(refused(refusal("NOT_FOUND")));
    return changed(ok(found), { before: { email: found.email, role: found.role } });
  });
}

/** An invite as shown before it is accepted. */
export interface ShownInvite {
  readonly organizationName: string;
  readonly inviterName: string;
  readonly email: string;
  readonly role: Role;
  /** Whether the invited person can join through the organization's identity provider. */
  readonly identityProvider: boolean;
}

/** Reads an open invite by its token. Returns `NOT_FOUND` also if its creator could no longer create it. */
export async function checkInvite(context: AuthContext, token: string): Promise<Result<ShownInvite>> {
  const { invites, organizations, users } = context.collections;
  const { accessProofs } = context;
  const found = await invites.findOne(openUnder(context, token, context.clock()));
  const invite = accessProofs.genuine("invite", found);
  if (invite === null) return refused(refusal("NOT_FOUND"));
  const { createdBy, email, organizationId, role } = invite;
  const [organization, member] = await Promise.all([
    organizations.findOne({ _id: organizationId }),
    users.findOne({ _id: createdBy.id, organizationId }),
  ]);
  const maker = accessProofs.genuine("user", member);
  if (organization === null || maker === null || !mayInvite(maker.role, role))
    return refused(refusal("NOT_FOUND"));
  const identityProvider = (await readSso(context, organizationId)) !== null;
  return ok({ organizationName: organization.name, inviterName: maker.name, email, role, identityProvider });
}

/**
 * Makes the invited person a member and signs them in. Organization, role and e-mail are the invite's. The write that
 * creates the member also consumes the invite: of any number of concurrent calls one succeeds, and a refused one can be
 * repeated.
 */
export async function acceptInvite(
  context: WritingContext,
  input: AcceptInviteInput,
): Promise<Result<SignedIn>> {
  const { accessProofs, clock, collections, passwords, randomBytes } = context;
  const now = clock();
  const invite = await openInviteOf(context, input.token);
  const organization =
    invite === null ? null : await collections.organizations.findOne({ _id: invite.organizationId });
  if (invite === null || organization === null) return refused(refusal("NOT_FOUND"));
  await repairProvisioning(context, organization);
  const { binding, email, organizationId, role } = invite;
  const sso = await readSso(context, organizationId);
  if (sso?.required === true && role !== "owner") return refused(refusal("SSO_REQUIRED"));
  const issue = await chosenPasswordIssue(input.password, [email, input.name, organization.name]);
  if (issue !== null) return refused(invalid("password", issue));
  const { name, password } = input;
  // A mailed token is known only to the mail's recipient.
  const emailVerified = invite.mail !== null;
  const person = {
    organizationId,
    name,
    email,
    emailVerified,
    role,
    password,
    ...definedFields({ binding }),
  };
  const user = await newUser(person, now, randomBytes, passwords, accessProofs);
  const joined = await joinByInvite(context, invite, { user }, (member) =>
    newSession(context, { user: member, organization }, ["pwd"], now, input.userAgent),
  );
  return joined.ok ? ok(await shownOnce(context, joined.value, now)) : joined;
}

/** Returns the open invite of a token, if the record is genuine. */
export async function openInviteOf(context: AuthContext, token: string): Promise<InviteDocument | null> {
  const { accessProofs, clock, collections } = context;
  return accessProofs.genuine(
    "invite",
    await collections.invites.findOne(openUnder(context, token, clock())),
  );
}

/**
 * Writes invite, member and session in one transaction. The e-mail is unique in the organization. The invite is valid
 * only while its creator could still create it: a removed or demoted user must not come back by an invite they kept.
 * Writes the organization's revision as well, so that nobody joins while a second factor is being made mandatory.
 */
export async function joinByInvite(
  context: WritingContext,
  invite: InviteDocument,
  { user }: Pick<Person, "user">,
  sessionOf: (member: UserDocument) => OpenedSession,
): Promise<Result<OpenedSession>> {
  const { accessProofs, clock, collections, db, transaction } = context;
  const now = clock();
  try {
    return await context.mutex.run(invite.organizationId, () =>
      transaction<Result<OpenedSession>>(async (session) => {
        const { _id, createdBy, organizationId, role, tokenHash } = invite;
        const made = await collections.users.findOne({ _id: createdBy.id, organizationId }, { session });
        const maker = accessProofs.genuine("user", made);
        if (maker === null || !mayInvite(maker.role, role)) return unchanged(refused(refusal("NOT_FOUND")));
        const open = { _id, tokenHash, expiresAt: { $gt: now } };
        const { deletedCount } = await collections.invites.deleteOne(open, { session });
        if (deletedCount === 0) return unchanged(refused(refusal("NOT_FOUND")));
        const next = { $inc: { membersRevision: 1 } };
        const joined = await collections.organizations.findOneAndUpdate({ _id: organizationId }, next, {
          session,
        });
        const isRequired = joined?.requireSecondFactor === true;
        const sso = accessProofs.genuine(
          "sso",
          await ssoOf(db).findOne({ _id: organizationId }, { session }),
        );
        const required = {
          ...user,
          ...(isRequired ? { secondFactorRequired: true as const } : {}),
          ...(sso?.required === true ? { ssoRequired: true as const } : {}),
        };
        const member: UserDocument = accessProofs.proven("user", required);
        await collections.users.insertOne(member, { session });
        const opened = sessionOf(member);
        await collections.sessions.insertOne(opened.session, { session });
        return changed(ok(opened), {
          by: ownerOf(opened),
          on: { type: "invite", id: _id },
          before: { email: invite.email, role },
          after: { userId: member._id, role },
        });
      }),
    );
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return refused(invalid("email", EMAIL_TAKEN));
  }
}

/**
 * Returns why a person must not withdraw an open invite: without the right to create owners, they must not prevent one.
 */
function revokeRefusal({ role }: InviteDocument, principal: SessionPrincipal, now: Date): Refusal | null {
  if (role !== "owner") return null;
  if (!mayInvite(principal.role, role)) return refusal("ROLE_REQUIRED");
  return isSteppedUp(principal, now) ? null : refusal("STEP_UP_REQUIRED");
}

/** Whether `maker` may invite someone as `invited`. Only owners invite owners. */
const mayInvite = (maker: Role, invited: Role): boolean =>
  !outranks(invited === "owner" ? "owner" : "admin", maker);

const openUnder = (context: AuthContext, token: string, now: Date) => ({
  tokenHash: { $in: tokenMacs(context).all(token) },
  expiresAt: { $gt: now },
});

/** MACs of tokens. Keyed, so that neither the timing of a look-up nor the database's content discloses a token. */
const tokenMacs = ({ masterKey }: AuthContext) => masterKey.macs("invite-token");
