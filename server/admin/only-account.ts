import type { Db } from "mongodb";
import type { AuthContext, WritingContext } from "../../src/identity/context.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { type FactorsHeld, factorsHeldBy } from "../../src/identity/reset-factors.ts";
import { AccessProofs } from "../../src/secrets/access-proofs.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import { AdminError, connectedToMongo } from "./connecting.ts";
import { withoutEntry } from "./record-command.ts";
import { requireMasterKey } from "./master-key.ts";

/** Dependencies of a command on one person's account. */
export interface AccountCommand {
  readonly db: Db;
  readonly masterKey: MasterKey;
  readonly context: Pick<WritingContext, "accessProofs" | "clock" | "collections" | "transaction">;
  readonly held: FactorsHeld;
}

/** Runs a command on the only account with an e-mail. Verifies the master key first. */
export const withOnlyAccount = <T>(
  env: NodeJS.ProcessEnv,
  email: string,
  organizationId: string | null,
  work: (command: AccountCommand) => Promise<T>,
): Promise<T> =>
  connectedToMongo(env, async ({ db }) => {
    const masterKey = await requireMasterKey(env);
    await verifyMasterKey(db, masterKey);
    const context = {
      accessProofs: new AccessProofs(masterKey.macs("access-proofs")),
      clock: () => new Date(),
      collections: authCollections(db),
      transaction: withoutEntry(transactionsOf(db.client)),
    };
    return work({ db, masterKey, context, held: await onlyAccount(context, email, organizationId) });
  });

/**
 * Returns the account with this e-mail, in the named organization or in any. Throws `AdminError` if there is none or
 * several: the command never guesses.
 */
async function onlyAccount(
  context: Pick<AuthContext, "collections">,
  email: string,
  organizationId: string | null,
): Promise<FactorsHeld> {
  const accounts = await factorsHeldBy(context, email, organizationId);
  const [held, another] = accounts;
  if (held === undefined) throw new AdminError(`Nobody has the e-mail ${email}.`);
  if (another === undefined) return held;
  const ids = accounts.map((account) => account.organizationId).join(", ");
  throw new AdminError(`${email} has accounts in several organizations; name one by --organization: ${ids}`);
}

/**
 * Message of a command that changed nothing: a new proof would validate changes made by something other than the
 * service.
 */
export const notDone = (email: string): string =>
  `${email} was removed meanwhile, or its record was changed by hand: \`npm run admin -- reconcile\` says which.`;
