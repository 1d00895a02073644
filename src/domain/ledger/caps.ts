import type { PerPeriod, WindowBounds } from "./calendar.ts";
import { checkSpendLimits, dollars, limitDenial, type LimitDenial } from "./policy.ts";
import { leftCents, MAX_TOTAL_MC, mcOf, remainingOf } from "../money.ts";
import { type Account, type Cap, type Ledger, type Level, levelOf, type Totals } from "./state.ts";

/**
 * Returns the denial if an amount does not fit the caps and spend limits of team and project, the team's first; null if
 * it fits. `own`: amounts that the payment already holds, which do not count against it.
 */
export function checkCaps(
  ledger: Ledger,
  { teamId }: Pick<Account, "teamId">,
  amountMc: number,
  bounds: WindowBounds,
  own: OwnHold = NO_HOLD,
): LimitDenial | null {
  const [team, { project }] = [levelOf(ledger, teamId), ledger];
  return (
    checkCap("TEAM_CAP_EXCEEDED", "team", team, amountMc, own.amountMc) ??
    checkSpendLimits("team", team.cap, team.windows, bounds, amountMc, own.windowsMc) ??
    checkCap("PROJECT_CAP_EXCEEDED", "project", project, amountMc, own.amountMc) ??
    checkSpendLimits("project", project.cap, project.windows, bounds, amountMc, own.windowsMc)
  );
}

interface OwnHold {
  readonly amountMc: number;
  readonly windowsMc?: PerPeriod;
}

const NO_HOLD: OwnHold = { amountMc: 0 };

function checkCap(
  code: "TEAM_CAP_EXCEEDED" | "PROJECT_CAP_EXCEEDED",
  noun: string,
  { cap: { capCents }, totals }: Level,
  amountMc: number,
  ownMc: number,
): LimitDenial | null {
  const usedMc = usedOf(totals) - ownMc;
  if (usedMc + amountMc <= (capCents === null ? MAX_TOTAL_MC : mcOf(capCents))) return null;
  const limit = capCents ?? leftCents(MAX_TOTAL_MC);
  const remaining = remainingOf(limit, usedMc);
  const reason = `The payment exceeds what remains of the ${noun}'s cap: ${dollars(remaining)} of ${dollars(limit)}.`;
  return limitDenial(code, reason, limit, remaining, null);
}

/** Returns the remainder of a cap; null if there is no cap. */
export const remainingCents = ({ capCents }: Cap, totals: Totals): number | null =>
  capCents === null ? null : remainingOf(capCents, usedOf(totals));

export const usedOf = ({ reservedMc, spentMc }: Totals): number => spentMc + reservedMc;
