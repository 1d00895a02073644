import { issueOf, resetPassword as resetPasswordOf } from "../../src/identity/password-change.ts";
import { Passwords } from "../../src/identity/passwords.ts";
import { AdminError } from "./connecting.ts";
import { recordCommand } from "./record-command.ts";
import { notDone, withOnlyAccount } from "./only-account.ts";

export interface PasswordReset {
  readonly userId: string;
  readonly organizationId: string;
  readonly email: string;
  readonly sessionsEnded: number;
}

/**
 * `reset-password`: for a person who cannot sign in any more, such as the last owner, who cannot be invited again. Ends
 * their sessions; their second factors stay. The audit entry comes first, so that no crash leaves a reset without one.
 * If the reset itself fails, the entry overstates what was done, and repeating the command completes it.
 */
export const resetPassword = (
  env: NodeJS.ProcessEnv,
  email: string,
  password: string,
  organizationId: string | null = null,
): Promise<PasswordReset> =>
  withOnlyAccount(env, email, organizationId, async ({ context: account, db, held, masterKey }) => {
    const context = { ...account, passwords: await Passwords.on(db) };
    const user = await context.collections.users.findOne({ _id: held.userId });
    if (user === null) throw new AdminError(`Nobody has the e-mail ${email}.`);
    const issue = await issueOf(context, user, password);
    if (issue !== null) throw new AdminError(issue);
    const { _id: userId } = user;
    await recordCommand(db, masterKey, {
      organizationId: user.organizationId,
      via: "reset-password",
      action: "resetPassword",
      resource: { type: "user", id: userId },
      after: null,
    });
    const reset = await resetPasswordOf(context, user, password);
    if (!reset.ok) throw new AdminError(notDone(email));
    return { userId, organizationId: user.organizationId, email: user.email, ...reset.value };
  });
