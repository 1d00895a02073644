import { ok, type Result } from "../domain/result.ts";
import { changed } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { FactorDocument } from "../store/identity-documents.ts";
import { normalizeEmail } from "./email.ts";
import { changeFactors, factorsOf } from "./factors.ts";
import { epochOf } from "./session-principal.ts";
import { isInForce, isPasskey } from "./views.ts";

/** A person's factors: names of passkeys, and whether a code generator is in force. */
export interface FactorNames {
  readonly passkeys: readonly string[];
  readonly totp: boolean;
}

/** Factors removed from a person, and the number of sessions ended, which a finder of the device could have used. */
export interface FactorsReset {
  readonly userId: string;
  readonly organizationId: string;
  readonly email: string;
  readonly removed: FactorNames;
  readonly sessionsEnded: number;
}

export interface FactorsHeld {
  readonly userId: string;
  readonly organizationId: string;
  readonly factors: FactorNames;
}

/** Returns the accounts of an e-mail, in all organizations or in the given one. */
export async function factorsHeldBy(
  context: Pick<AuthContext, "collections">,
  email: string,
  organizationId: string | null,
): Promise<readonly FactorsHeld[]> {
  const inOne = organizationId === null ? {} : { organizationId };
  const of = { emailNormalized: normalizeEmail(email), ...inOne };
  const users = await context.collections.users.find(of, { sort: { createdAt: 1, _id: 1 } }).toArray();
  return await Promise.all(
    users.map(async (user) => ({
      userId: user._id,
      organizationId: user.organizationId,
      factors: namesOf(await factorsOf(context, user._id)),
    })),
  );
}

/**
 * Removes all second factors of a person who has lost the last one, and ends their sessions: a finder of the device may
 * be signed in on it, and could then enrol a first factor without step-up. The password remains. `UNAUTHORIZED` if the
 * person does not exist. For the operator alone: no operation of the service calls this.
 */
export const resetFactors = (
  context: Pick<WritingContext, "accessProofs" | "clock" | "collections" | "transaction" | "mutex">,
  userId: string,
): Promise<Result<FactorsReset>> =>
  changeFactors<FactorsReset>(context, userId, async (session, user) => {
    const { email, organizationId } = user;
    const { factors, sessions, users } = context.collections;
    const removed = namesOf(await factorsOf(context, userId, session));
    await factors.deleteMany({ userId }, { session });
    // Also ends the session of a sign-in in progress.
    const none = { secondFactors: [], sessionsEpoch: epochOf(user) + 1 };
    await users.updateOne(
      { _id: userId },
      { $set: context.accessProofs.changed("user", user, none) },
      { session },
    );
    const ended = { revokedAt: context.clock(), revokedBecause: "factors_reset" } as const;
    const open = await sessions.updateMany({ userId, revokedAt: null }, { $set: ended }, { session });
    return changed(ok({ userId, organizationId, email, removed, sessionsEnded: open.modifiedCount }));
  });

const namesOf = (factors: readonly FactorDocument[]): FactorNames => ({
  passkeys: factors.filter(isPasskey).map(({ name }) => name),
  totp: factors.some((factor) => factor.kind === "totp" && isInForce(factor)),
});
