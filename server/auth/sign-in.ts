import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { Concerns } from "../audit/notes.ts";
import type { AuthContext } from "./context.ts";
import type { AuthenticationMethod, UserDocument } from "./documents.ts";
import { normalizeEmail } from "./email.ts";
import { openSession, repairProvisioning, type SignedIn } from "./sessions.ts";
import { keepConfirmed, spendTotpCode } from "./totp-factor.ts";
import { confirmedFactorKinds } from "./views.ts";

export interface SignInInput {
  readonly email: string;
  readonly password: string;
  readonly code?: string | undefined;
  /** What the client calls itself. */
  readonly userAgent?: string | null;
}

/**
 * Signs a person in. An unknown e-mail and a wrong password get the same answer after the same
 * work, and nobody learns without the password whether there is a second factor.
 */
export async function signIn(
  context: AuthContext,
  input: SignInInput,
  concerns: Concerns = () => undefined,
): Promise<Result<SignedIn>> {
  const now = context.clock();
  const user = await context.collections.users.findOne({ emailNormalized: normalizeEmail(input.email) });
  if (user !== null) concerns({ organizationId: user.organizationId, userId: user._id, name: user.name });
  const isRight = await context.passwords.matches(user?.passwordHash ?? null, input.password);
  if (user === null || !isRight) {
    return refused(refusal("UNAUTHORIZED", "The e-mail or the password is wrong."));
  }
  const amr = await secondFactor(context, user._id, input.code, now);
  if (!amr.ok) return amr;
  return ok(await beginSession(context, user, amr.value, input.userAgent));
}

/** Starts the session of a person who has proved who they are, in these ways. */
export async function beginSession(
  context: AuthContext,
  user: UserDocument,
  amr: readonly AuthenticationMethod[],
  userAgent: string | null = null,
): Promise<SignedIn> {
  const organization = await context.collections.organizations.findOne({ _id: user.organizationId });
  if (organization === null) throw new Error(`User ${user._id} belongs to no organization.`);
  await repairProvisioning(context, organization);
  return await openSession(context, { user, organization }, amr, context.clock(), userAgent);
}

/** Asks for a code where there is TOTP. Passkeys are another way in, not a second step of this one. */
async function secondFactor(
  context: AuthContext,
  userId: string,
  code: string | undefined,
  now: Date,
): Promise<Result<readonly AuthenticationMethod[]>> {
  const factors = await context.collections.factors.find({ userId }).toArray();
  if (!confirmedFactorKinds(factors).includes("totp")) return ok(["pwd"]);
  if (code === undefined) return refused(refusal("SECOND_FACTOR_REQUIRED"));
  const spent = await spendTotpCode(context, { userId, slot: "confirmed", code, now }, keepConfirmed);
  if (spent.ok) return ok(["pwd", "otp"]);
  // This code has two statuses: 401 at sign-in, 403 elsewhere.
  return spent.refusal.code === "SECOND_FACTOR_INVALID" ? refused({ ...spent.refusal, status: 401 }) : spent;
}
