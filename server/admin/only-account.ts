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

/** Dependencies of a command about one person's account. */
export interface AccountCommand {
  readonly db: Db;
  readonly masterKey: MasterKey;
  readonly context: Pick<WritingContext, "accessProofs" | "clock" | "collections" | "transaction">;
  readonly held: FactorsHeld;
}

/** Runs a command on the only account of an e-mail: with the database, the verified master key and the account. */
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
 * The account that has this e-mail, in the organization that is named or in whichever there is. Throws `AdminError` where
 * there is none, or several: which one is meant is never guessed.
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

/** Why a command has changed nothing: a new proof would make good what something else has written. */
export const notDone = (email: string): string =>
  `${email} was removed meanwhile, or its record was changed by hand: \`npm run admin -- reconcile\` says which.`;
