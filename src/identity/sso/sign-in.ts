import type { Filter } from "mongodb";
import { z } from "zod";
import { changed, type NoteAffected, type Outcome, unchanged } from "../../audit/notes.ts";
import { ssoPageOf } from "../../contract/cookies.ts";
import { refusal } from "../../domain/errors.ts";
import { ok, refused, type Result } from "../../domain/result.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type {
  InviteDocument,
  OrganizationDocument,
  SessionDocument,
  UserDocument,
} from "../../store/identity-documents.ts";
import { type SsoDocument, ssoOf } from "../../store/sso-documents.ts";
import type { AuthContext, WritingContext } from "../context.ts";
import { normalizeEmail } from "../email.ts";
import { joinByInvite, openInviteOf } from "../invites.ts";
import { newUser } from "../new-user.ts";
import { newSession, type OpenedSession, ownerOf, shownOnce, type SignedIn } from "../sessions.ts";
import {
  type Answer,
  type Identity,
  namedIn,
  newFlow,
  type ProviderClient,
  ProviderFailure,
  type Providers,
} from "./providers.ts";
import { readSso, SSO_SECRET_PURPOSE } from "./settings.ts";

const FLOW_PURPOSE = "sso-flow";
const FLOW_MAX_MS = 10 * 60_000;

const flowSchema = z.strictObject({
  organizationId: z.string(),
  issuer: z.string(),
  clientId: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  invite: z.string().nullable(),
  endsAt: z.number(),
});

/** A sign-in that has begun: the browser's destination, and the token it keeps meanwhile. */
export interface BegunSso {
  readonly url: string;
  readonly flowToken: string;
}

export interface FinishSsoInput {
  readonly answer: Answer;
  readonly flowToken: string | undefined;
  /** Organization to whose page the browser returned. */
  readonly organizationId: string;
  readonly userAgent: string | null;
}

const failed = () => refused(refusal("SSO_FAILED"));
const noAccount = () => refused(refusal("SSO_NO_ACCOUNT"));

/**
 * Starting point of a sign-in: the address, of which only the domain counts, so that nobody learns who has an account;
 * or an invite's token.
 */
export type SsoBeginning = { readonly email: string } | { readonly token: string };

export async function beginSso(context: AuthContext, by: SsoBeginning): Promise<Result<BegunSso>> {
  if ("email" in by) {
    const found = await ssoOf(context.db).findOne({ domains: domainOf(by.email) });
    return begin(context, context.accessProofs.genuine("sso", found), null, by.email);
  }
  const invite = await openInviteOf(context, by.token);
  const sso = invite === null ? null : await readSso(context, invite.organizationId);
  return begin(context, sso, by.token, invite?.email ?? null);
}

const domainOf = (email: string): string => normalizeEmail(email).split("@").at(-1) ?? "";

async function begin(
  context: AuthContext,
  sso: SsoDocument | null,
  invite: string | null,
  loginHint: string | null,
): Promise<Result<BegunSso>> {
  const { clock, providers, sealer } = context;
  if (sso === null || providers === null) return refused(refusal("NOT_FOUND"));
  const flow = newFlow();
  const { _id: organizationId, clientId, issuer } = sso;
  const { nonce, state, verifier } = flow;
  const endsAt = clock().getTime() + FLOW_MAX_MS;
  const content = { organizationId, issuer, clientId, nonce, verifier, invite, endsAt };
  try {
    const url = await providers.authorizationUrl(clientOf(context, sso), flow, loginHint);
    const sealed = sealer.seal(FLOW_PURPOSE, state, JSON.stringify(content));
    return ok({ url, flowToken: Buffer.from(sealed).toString("base64url") });
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error;
    return failed();
  }
}

const clientOf = (
  { baseUrl, sealer }: AuthContext,
  { _id, clientId, issuer, sealedSecret }: SsoDocument,
): ProviderClient => ({
  issuer,
  clientId,
  redirectUri: `${baseUrl}${ssoPageOf(_id)}`,
  clientSecret: sealer.open(SSO_SECRET_PURPOSE, _id, sealedSecret),
});

/**
 * Signs a person in by the provider's response, in the browser that began the sign-in. A person is identified by issuer
 * and subject. An unknown one is linked by an invite, or by a verified address in one of the organization's domains.
 */
export async function finishSso(
  context: WritingContext,
  { answer, flowToken, organizationId: answering, userAgent }: FinishSsoInput,
  noteAffected: NoteAffected,
): Promise<Result<SignedIn>> {
  const { collections, providers } = context;
  const flow = flowIn(context, flowToken, answer.state ?? "");
  if (flow === null || providers === null) return failed();
  const { organizationId } = flow;
  // A code from another organization's provider must not reach this organization's provider, which could redeem it.
  if (answering !== organizationId) return failed();
  const [sso, organization] = await Promise.all([
    readSso(context, organizationId),
    collections.organizations.findOne({ _id: organizationId }),
  ]);
  if (sso === null || organization === null) return failed();
  // The client has changed since: the response is not for it.
  if (sso.issuer !== flow.issuer || sso.clientId !== flow.clientId) return failed();
  const identity = await identified(
    providers,
    clientOf(context, sso),
    { ...flow, state: answer.state ?? "" },
    answer,
  );
  if (identity === null) return failed();
  const known = await memberOf(context, organizationId, identity);
  if (known !== null) noteAffected({ organizationId, userId: known._id, name: known.name });
  const entry = { identity, organization, sso, userAgent };
  const opened =
    known === null ? await enter(context, entry, flow.invite) : await open(context, entry, known);
  if (!opened.ok) return opened;
  return ok(await shownOnce(context, opened.value, context.clock()));
}

interface Entering {
  readonly identity: Identity;
  readonly organization: OrganizationDocument;
  readonly sso: SsoDocument;
  readonly userAgent: string | null;
}

function flowIn({ clock, sealer }: AuthContext, flowToken: string | undefined, state: string) {
  if (flowToken === undefined || state === "") return null;
  try {
    const sealed = Buffer.from(flowToken, "base64url").toString("utf8");
    const flow = flowSchema.parse(JSON.parse(sealer.open(FLOW_PURPOSE, state, sealed)));
    return clock().getTime() < flow.endsAt ? flow : null;
  } catch {
    return null;
  }
}

async function identified(
  providers: Providers,
  of: ProviderClient,
  flow: Parameters<Providers["identify"]>[1],
  answer: Answer,
): Promise<Identity | null> {
  try {
    return await providers.identify(of, flow, answer);
  } catch (error) {
    if (error instanceof ProviderFailure) return null;
    throw error;
  }
}

const linkTo = ({ issuer, subject }: Identity) => ({ sso: { issuer, subject } });

async function memberOf(
  { accessProofs, collections: { users } }: AuthContext,
  organizationId: string,
  { issuer, subject }: Identity,
): Promise<UserDocument | null> {
  const found = await users.findOne({ organizationId, "sso.issuer": issuer, "sso.subject": subject });
  return accessProofs.genuine("user", found);
}

const sessionOf = (
  context: AuthContext,
  { identity, organization, userAgent }: Entering,
  user: UserDocument,
): OpenedSession =>
  newSession(context, { user, organization }, ["sso"], context.clock(), userAgent, identity.sid);

async function open(
  context: WritingContext,
  entering: Entering,
  user: UserDocument,
): Promise<Result<OpenedSession>> {
  const opened = sessionOf(context, entering, user);
  return await context.transaction<Result<OpenedSession>>(async (session) => {
    await context.collections.sessions.insertOne(opened.session, { session });
    return changed(ok(opened), { by: ownerOf(opened) });
  });
}

/** Like `link`, except that a person linked meanwhile by a concurrent sign-in is signed in. */
async function enter(
  context: WritingContext,
  entering: Entering,
  inviteToken: string | null,
): Promise<Result<OpenedSession>> {
  const linked = await link(context, entering, inviteToken).catch((error: unknown) => {
    if (isDuplicateKey(error)) return noAccount();
    throw error;
  });
  if (linked.ok) return linked;
  const known = await memberOf(context, entering.organization._id, entering.identity);
  return known === null ? noAccount() : await open(context, entering, known);
}

/** Links a person who signs in for the first time: by their invite, to their account, or to a new one. */
async function link(
  context: WritingContext,
  entering: Entering,
  inviteToken: string | null,
): Promise<Result<OpenedSession>> {
  const { clock, collections } = context;
  const { identity, organization, sso } = entering;
  const byToken = inviteToken === null ? null : await openInviteOf(context, inviteToken);
  if (byToken?.organizationId === organization._id) return await joinAs(context, entering, byToken);
  const email = provenEmail(identity, sso);
  if (email === null) return noAccount();
  const named = { organizationId: organization._id, emailNormalized: normalizeEmail(email) };
  const account = await collections.users.findOne(named);
  if (account !== null) return await linkAccount(context, entering, account);
  const found = await collections.invites.findOne({ ...named, expiresAt: { $gt: clock() } });
  const invite = context.accessProofs.genuine("invite", found);
  if (invite !== null) return await joinAs(context, entering, invite);
  return sso.jitRole === null ? noAccount() : await joinUninvited(context, entering, email);
}

/** Returns the address if the provider states that it is verified and its domain is the organization's. */
function provenEmail({ email, emailVerified }: Identity, { domains }: SsoDocument): string | null {
  if (email === null || !emailVerified) return null;
  return domains.includes(domainOf(email)) ? email : null;
}

const nameOf = ({ email, name }: Identity, fallback: string): string =>
  name ?? (email ?? fallback).split("@")[0]?.slice(0, 100) ?? fallback;

async function joinAs(
  context: WritingContext,
  entering: Entering,
  invite: InviteDocument,
): Promise<Result<OpenedSession>> {
  const { accessProofs, clock, passwords, randomBytes } = context;
  const { identity } = entering;
  const { binding, email, organizationId, role } = invite;
  const emailVerified =
    invite.mail !== null ||
    (identity.emailVerified && normalizeEmail(identity.email ?? "") === invite.emailNormalized);
  const person = {
    organizationId,
    name: nameOf(identity, email),
    email,
    emailVerified,
    role,
    ...(binding === undefined ? {} : { binding }),
    ...linkTo(identity),
    password: null,
  };
  const user = await newUser(person, clock(), randomBytes, passwords, accessProofs);
  return await joinByInvite(context, invite, { user }, (member) => sessionOf(context, entering, member));
}

/**
 * Links an existing account with a verified address. An unverified address may have been claimed by a stranger, who
 * knows the account's password.
 */
async function linkAccount(
  context: WritingContext,
  entering: Entering,
  { _id, emailVerified }: UserDocument,
): Promise<Result<OpenedSession>> {
  if (!emailVerified) return noAccount();
  const { accessProofs, collections, mutex, transaction } = context;
  const write = () =>
    transaction<Result<OpenedSession>>(async (session) => {
      const user = accessProofs.genuine("user", await collections.users.findOne({ _id }, { session }));
      if (user === null || !user.emailVerified) return unchanged(noAccount());
      // A link to another subject means that the address now belongs to another person. A link to an earlier provider
      // is void.
      if (user.sso?.issuer === entering.identity.issuer) return unchanged(noAccount());
      const change = accessProofs.changed("user", user, linkTo(entering.identity));
      await collections.users.updateOne({ _id }, { $set: change }, { session });
      const opened = sessionOf(context, entering, { ...user, ...change });
      await collections.sessions.insertOne(opened.session, { session });
      return changed(ok(opened), { by: ownerOf(opened), after: linkTo(entering.identity) });
    });
  return await mutex.run(entering.organization._id, write);
}

async function joinUninvited(
  context: WritingContext,
  entering: Entering,
  email: string,
): Promise<Result<OpenedSession>> {
  const { accessProofs, clock, collections, db, mutex, passwords, randomBytes, transaction } = context;
  const { identity, organization } = entering;
  const { _id: organizationId } = organization;
  const { jitRole: role } = entering.sso;
  if (role === null) return noAccount();
  const name = nameOf(identity, email);
  const person = {
    organizationId,
    name,
    email,
    emailVerified: true,
    role,
    ...linkTo(identity),
    password: null,
  };
  const user = await newUser(person, clock(), randomBytes, passwords, accessProofs);
  const write = async (
    session: Parameters<Parameters<typeof transaction>[0]>[0],
  ): Promise<Outcome<Result<OpenedSession>>> => {
    const next = { $inc: { membersRevision: 1 } };
    const _id = organizationId;
    const joined = await collections.organizations.findOneAndUpdate({ _id }, next, { session });
    const sso = accessProofs.genuine("sso", await ssoOf(db).findOne({ _id }, { session }));
    if (sso?.jitRole !== role) return unchanged(noAccount());
    const member = accessProofs.proven("user", {
      ...user,
      ...(joined?.requireSecondFactor === true ? { secondFactorRequired: true as const } : {}),
      ...(sso.required ? { ssoRequired: true as const } : {}),
    });
    await collections.users.insertOne(member, { session });
    const opened = sessionOf(context, entering, member);
    await collections.sessions.insertOne(opened.session, { session });
    const after = { userId: member._id, email, role, ...linkTo(identity) };
    return changed(ok(opened), { by: ownerOf(opened), after });
  };
  return await mutex.run(organizationId, () => transaction(write));
}

/** Ends the sessions named by a provider's logout token. Refuses tokens not signed by a known provider. */
export async function endBySso(context: WritingContext, token: string): Promise<Result<null>> {
  const { accessProofs, clock, collections, db, providers, transaction } = context;
  const named = namedIn(token);
  if (named === null || providers === null) return failed();
  const client = { issuer: named.issuer, clientId: { $in: [...named.audiences] } };
  const sso = accessProofs.genuine("sso", await ssoOf(db).findOne(client));
  if (sso === null) return failed();
  try {
    const { sid, sub } = await providers.loggedOut(clientOf(context, sso), token);
    const { _id: organizationId, issuer } = sso;
    const person = sub === undefined ? {} : { "sso.issuer": issuer, "sso.subject": sub };
    const begun =
      sid === undefined ? null : await collections.sessions.findOne({ ssoSid: sid, organizationId });
    const user = await collections.users.findOne(
      sub === undefined ? { _id: begun?.userId ?? "", organizationId } : { organizationId, ...person },
    );
    if (user === null) return ok(null);
    // Some providers name a session at its end and not at its beginning: it could be any that has no id.
    const unnamed: readonly Filter<SessionDocument>[] =
      sub === undefined ? [] : [{ ssoSid: { $exists: false } }];
    const alive: Filter<SessionDocument> = {
      userId: user._id,
      amr: "sso",
      revokedAt: null,
      ...(sid === undefined ? {} : { $or: [{ ssoSid: sid }, ...unnamed] }),
    };
    const ended = { $set: { revokedAt: clock(), revokedBecause: "sso_logout" } } as const;
    return await transaction<Result<null>>(async (session) => {
      const { modifiedCount } = await collections.sessions.updateMany(alive, ended, { session });
      const by = { organizationId, userId: user._id, name: user.name };
      return modifiedCount === 0
        ? unchanged(ok(null))
        : changed(ok(null), { by, after: { endedSessions: modifiedCount } });
    });
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error;
    return failed();
  }
}
