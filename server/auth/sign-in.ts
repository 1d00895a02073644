import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { AuthenticationMethod } from "./documents.ts";
import { normalizeEmail } from "./email.ts";
import { openSession, repairProvisioning, type SignedIn } from "./sessions.ts";
import { keepConfirmed, spendTotpCode } from "./totp-factor.ts";
import { confirmedFactorKinds } from "./views.ts";

export interface SignInInput {
  readonly email: string;
  readonly password: string;
  readonly code?: string | undefined;
}

/**
 * Signs a person in (decisions.md section 2). An unknown e-mail and a wrong password get the same answer after the same
 * work, and nobody learns without the password whether there is a second factor.
 */
export async function signIn(context: AuthContext, input: SignInInput): Promise<Result<SignedIn>> {
  const now = context.clock();
  const { users, organizations } = context.collections;
  const user = await users.findOne({ emailNormalized: normalizeEmail(input.email) });
  const isRight = await context.passwords.matches(user?.passwordHash ?? null, input.password);
  if (user === null || !isRight) {
    return refused(refusal("UNAUTHORIZED", "The e-mail or the password is wrong."));
  }
  const amr = await secondFactor(context, user._id, input.code, now);
  if (!amr.ok) return amr;
  const organization = await organizations.findOne({ _id: user.organizationId });
  if (organization === null) throw new Error(`User ${user._id} belongs to no organization.`);
  await repairProvisioning(context, organization);
  return ok(await openSession(context, { user, organization }, amr.value, now));
}

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
  // decisions.md section 1 gives this code two statuses: 401 at sign-in, 403 elsewhere.
  return spent.refusal.code === "SECOND_FACTOR_INVALID" ? refused({ ...spent.refusal, status: 401 }) : spent;
}
