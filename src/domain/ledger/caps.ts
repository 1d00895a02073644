import { dollars, limitDenial, type LimitDenial } from "./policy.ts";
import { remainingOf } from "../money.ts";
import { type Account, type Cap, type Ledger, type Level, levelOf, type Totals } from "./state.ts";

/**
 * Whether so much more fits the caps of team and project, the team first; the first that does not names the denial. `ownCents`:
 * what the payment holds already, which is not counted against it.
 */
export function checkCaps(
  ledger: Ledger,
  { teamId }: Pick<Account, "teamId">,
  amountCents: number,
  ownCents = 0,
): LimitDenial | null {
  return (
    checkCap("TEAM_CAP_EXCEEDED", "team", levelOf(ledger, teamId), amountCents, ownCents) ??
    checkCap("PROJECT_CAP_EXCEEDED", "project", ledger.project, amountCents, ownCents)
  );
}

function checkCap(
  code: "TEAM_CAP_EXCEEDED" | "PROJECT_CAP_EXCEEDED",
  noun: string,
  { cap: { capCents }, totals }: Level,
  amountCents: number,
  ownCents: number,
): LimitDenial | null {
  if (capCents === null) return null;
  const usedCents = usedOf(totals) - ownCents;
  if (usedCents + amountCents <= capCents) return null;
  const remaining = remainingOf(capCents, usedCents);
  const reason = `The payment exceeds what remains of the ${noun}'s cap: ${dollars(remaining)} of ${dollars(capCents)}.`;
  return limitDenial(code, reason, capCents, remaining, null);
}

/** Returns the rest of a cap; null if there is no cap. */
export const remainingCents = ({ capCents }: Cap, totals: Totals): number | null =>
  capCents === null ? null : remainingOf(capCents, usedOf(totals));

const usedOf = ({ reservedCents, spentCents }: Totals): number => spentCents + reservedCents;
