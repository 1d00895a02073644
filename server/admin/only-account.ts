import { type FactorsHeld, factorsHeldBy } from "../auth/reset-factors.ts";
import type { AuthContext } from "../auth/context.ts";
import { AdminError } from "./connecting.ts";

/**
 * The account that has this e-mail, in the organization that is named or in whichever there is. Throws `AdminError` where
 * there is none, or several: which one is meant is never guessed.
 */
export async function onlyAccount(
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
