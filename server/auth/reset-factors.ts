import { ok, type Result } from "../../src/domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { FactorDocument } from "./documents.ts";
import { normalizeEmail } from "./email.ts";
import { changeFactors, factorsOf } from "./factors.ts";
import { isInForce, isPasskey } from "./views.ts";

/** Of passkeys their names; whether there is a code generator in force. */
export interface FactorNames {
  readonly passkeys: readonly string[];
  readonly totp: boolean;
}

/** What was taken from a person: their factors, and the sessions that a finder of the device could use. */
export interface FactorsReset {
  readonly userId: string;
  readonly organizationId: string;
  readonly email: string;
  readonly removed: FactorNames;
  readonly sessionsEnded: number;
}

/** Whose an e-mail is, and what they have in force; null: nobody's. */
export async function factorsHeldBy(
  context: Pick<AuthContext, "collections">,
  email: string,
): Promise<{
  readonly userId: string;
  readonly organizationId: string;
  readonly factors: FactorNames;
} | null> {
  const user = await context.collections.users.findOne({ emailNormalized: normalizeEmail(email) });
  if (user === null) return null;
  const factors = namesOf(await factorsOf(context, user._id));
  return { userId: user._id, organizationId: user.organizationId, factors };
}

/**
 * Takes all second factors of a person who has lost the last one, and ends their sessions: whoever found the device may
 * be signed in on it, and from then on a first factor is enrolled without step-up. Their password is what is left.
 * `UNAUTHORIZED` where there is no such person. For the operator alone: no operation of the service leads here.
 */
export const resetFactors = (
  context: Pick<AuthContext, "clock" | "collections" | "transaction" | "turns">,
  userId: string,
): Promise<Result<FactorsReset>> =>
  changeFactors(context, userId, async (session, { email, organizationId }) => {
    const { factors, sessions, users } = context.collections;
    const removed = namesOf(await factorsOf(context, userId, session));
    await factors.deleteMany({ userId }, { session });
    // A sign-in that is on its way counts as one of theirs.
    await users.updateOne({ _id: userId }, { $inc: { sessionsEpoch: 1 } }, { session });
    const ended = { revokedAt: context.clock(), revokedBecause: "factors_reset" } as const;
    const open = await sessions.updateMany({ userId, revokedAt: null }, { $set: ended }, { session });
    return ok({ userId, organizationId, email, removed, sessionsEnded: open.modifiedCount });
  });

const namesOf = (factors: readonly FactorDocument[]): FactorNames => ({
  passkeys: factors.filter(isPasskey).map(({ name }) => name),
  totp: factors.some((factor) => factor.kind === "totp" && isInForce(factor)),
});
