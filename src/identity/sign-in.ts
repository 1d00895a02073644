import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { AffectedAccount, NoteAffected } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { AuthenticationMethod, UserDocument } from "../store/identity-documents.ts";
import { normalizeEmail } from "./email.ts";
import { isSamePassword } from "./passwords.ts";
import type { PasskeyChange } from "./passkey-use.ts";
import { isBehindSso } from "./session-principal.ts";
import { openSession, repairProvisioning, type SignedIn } from "./sessions.ts";
import { onlyUseCode, spendTotpCode } from "./totp-factor.ts";

export interface SignInInput {
  readonly email: string;
  readonly password: string;
  readonly code?: string | undefined;
  /** User agent as stated by the client. */
  readonly userAgent?: string | null;
  /** Organization, needed if the address has accounts in several and this is beyond `ACCOUNTS_TRIED_MAX`. */
  readonly organizationId?: string | undefined;
  /** The only permitted account, if the request was admitted as from a device known to that account alone. */
  readonly onlyUserId?: string | null;
}

/** Maximum accounts of one address on which a password is tried if no organization is named. */
export const ACCOUNTS_TRIED_MAX = 5;

/**
 * Signs a person in. An unknown e-mail and a wrong password get the same answer after the same work, one hash however
 * many accounts the address has. Without the password, no client learns whether an account, a second factor or an
 * organization exists. A password that fits several accounts signs in to none of them: the answer lists their
 * organizations, and no code is consumed.
 */
export async function signIn(
  context: WritingContext,
  input: SignInInput,
  noteAffected: NoteAffected = () => undefined,
): Promise<Result<SignedIn>> {
  const now = context.clock();
  // All look-ups run at once, so that the duration of one does not show.
  const [accounts, isShared, hash] = await Promise.all([
    accountsOf(context, input),
    isServiceShared(context),
    context.passwords.hash(input.email, input.password),
  ]);
  const fitting = accounts.filter(({ passwordHash }) => isSamePassword(passwordHash, hash));
  const isAddressed = !isShared || input.organizationId !== undefined || typeof input.onlyUserId === "string";
  const refusedOnes = () => accounts.map((account) => affectedByRefused(account, isAddressed));
  for (const account of fitting.length === 0 ? refusedOnes() : fitting.map(affectedAccount))
    noteAffected(account);
  const open = fitting.filter((account) => !isBehindSso(account));
  const [user, another] = open;
  if (user === undefined && fitting.length > 0) return refused(refusal("SSO_REQUIRED"));
  if (user === undefined) return refused(refusal("UNAUTHORIZED", "The e-mail or the password is wrong."));
  if (another !== undefined) return await whichOrganization(context, open);
  const amr = await secondFactor(context, user, input.code, now);
  if (!amr.ok) return amr;
  return ok(await beginSession(context, user, amr.value, input.userAgent));
}

const affectedAccount = ({ _id, name, organizationId }: UserDocument): AffectedAccount => ({
  organizationId,
  userId: _id,
  name,
});

/**
 * Returns the account whose audit log records a wrong password. An unverified address may belong to another person, who
 * means another account, so the request's origin is recorded only if the address is verified or the request names this
 * account. That depends only on this account and the request, so no log discloses whether the address has an account
 * elsewhere.
 */
function affectedByRefused(account: UserDocument, isAddressed: boolean): AffectedAccount {
  const isNotified = isAddressed || account.emailVerified;
  return isNotified ? affectedAccount(account) : { ...affectedAccount(account), isOriginHidden: true };
}

/** Whether there are several organizations. Queried at each sign-in: its duration must not depend on the account. */
async function isServiceShared({ collections }: AuthContext): Promise<boolean> {
  const some = await collections.organizations
    .find({}, { projection: { _id: 1 } })
    .limit(2)
    .toArray();
  return some.length > 1;
}

/**
 * Returns the accounts that a sign-in may be for. Accounts with a verified address come first, so that an unverified
 * claim does not take their place.
 */
async function accountsOf(
  { accessProofs, collections }: AuthContext,
  { email, onlyUserId = null, organizationId }: SignInInput,
): Promise<UserDocument[]> {
  const of = {
    emailNormalized: normalizeEmail(email),
    ...(organizationId === undefined ? {} : { organizationId }),
    ...(onlyUserId === null ? {} : { _id: onlyUserId }),
  };
  const order = { emailVerified: -1, createdAt: 1, _id: 1 } as const;
  const found = await collections.users.find(of, { sort: order, limit: ACCOUNTS_TRIED_MAX }).toArray();
  return found.filter((user) => accessProofs.genuine("user", user) !== null);
}

/** Asks a user whose password fits all of these accounts which organization they mean. */
async function whichOrganization(
  { collections }: AuthContext,
  fitting: readonly UserDocument[],
): Promise<Result<never>> {
  const ids = fitting.map(({ organizationId }) => organizationId);
  const found = await collections.organizations.find({ _id: { $in: ids } }).toArray();
  const organizations = found
    .map(({ _id, name }) => ({ id: _id, name }))
    .toSorted((left, right) => (left.id < right.id ? -1 : 1));
  return refused(refusal("ORGANIZATION_REQUIRED", undefined, { organizations }));
}

/** Starts the session of a person who has proved their identity by `amr`. */
export async function beginSession(
  context: WritingContext,
  user: UserDocument,
  amr: readonly AuthenticationMethod[],
  userAgent: string | null = null,
  change: PasskeyChange | null = null,
): Promise<SignedIn> {
  const organization = await context.collections.organizations.findOne({ _id: user.organizationId });
  if (organization === null) throw new Error(`User ${user._id} belongs to no organization.`);
  await repairProvisioning(context, organization);
  return await openSession(context, { user, organization }, amr, context.clock(), userAgent, change);
}

/** Requires a code if TOTP is in force. Passkeys are another way in, not a second step of this one. */
async function secondFactor(
  context: AuthContext,
  { _id: userId, secondFactors = [] }: UserDocument,
  code: string | undefined,
  now: Date,
): Promise<Result<readonly AuthenticationMethod[]>> {
  const totp = secondFactors.find(({ kind }) => kind === "totp");
  if (totp === undefined) return ok(["pwd"]);
  if (code === undefined) return refused(refusal("SECOND_FACTOR_REQUIRED"));
  const spent = await spendTotpCode(
    context,
    { userId, slot: "confirmed", secretId: totp.id, code, now },
    onlyUseCode,
  );
  if (spent.ok) return ok(["pwd", "otp"]);
  // The error code has status 401 at sign-in and 403 elsewhere.
  return spent.refusal.code === "SECOND_FACTOR_INVALID" ? refused({ ...spent.refusal, status: 401 }) : spent;
}
