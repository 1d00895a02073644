import { type FactorsReset, resetFactors } from "../../src/identity/reset-factors.ts";
import { KeyedMutex } from "../../src/lib/keyed-mutex.ts";
import { AdminError } from "./connecting.ts";
import { recordCommand } from "./record-command.ts";
import { notDone, withOnlyAccount } from "./only-account.ts";

/** This process has no concurrent requests. */
const LOCK_TIMEOUT_MS = 1_000;

/**
 * `reset-second-factors`: for a person who has lost their only second factor and cannot step up to enrol another. The
 * audit entry comes first, so that no crash leaves a reset without one. If the reset itself fails, the entry overstates
 * what was done, and repeating the command completes it.
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
    const reset = await resetFactors({ ...context, mutex: new KeyedMutex(LOCK_TIMEOUT_MS) }, held.userId);
    if (!reset.ok) throw new AdminError(notDone(email));
    return reset.value;
  });
