import { type FactorsReset, resetFactors } from "../../src/identity/reset-factors.ts";
import { KeyedMutex } from "../../src/lib/keyed-mutex.ts";
import { AdminError } from "./connecting.ts";
import { recordCommand } from "./record-command.ts";
import { notDone, withOnlyAccount } from "./only-account.ts";

/** There are no concurrent requests in this process. */
const LOCK_WAIT_MS = 1_000;

/**
 * `reset-second-factors`: for a person who has lost their only second factor and can't step up any more to enrol another.
 * Its entry in their organization's audit log comes first, so that no crash leaves a reset without one; one that is not
 * followed by a reset says more than was done, and the same command again does it.
 */
export const resetSecondFactors = (
  env: NodeJS.ProcessEnv,
  email: string,
  organizationId: string | null = null,
): Promise<FactorsReset> =>
  withOnlyAccount(env, email, organizationId, async ({ context, db, held, masterKey }) => {
    await recordCommand(db, masterKey, {
      organizationId: held.organizationId,
      via: "reset-second-factors",
      action: "resetSecondFactors",
      resource: { type: "user", id: held.userId },
      before: held.factors,
      after: { passkeys: [], totp: false },
    });
    const reset = await resetFactors({ ...context, mutex: new KeyedMutex(LOCK_WAIT_MS) }, held.userId);
    if (!reset.ok) throw new AdminError(notDone(email));
    return reset.value;
  });
