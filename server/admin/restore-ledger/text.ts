import { differenceText, plural, shownDifference } from "../reconcile/text.ts";
import { usedCents } from "../../../src/domain/money.ts";
import { cents } from "../../../src/rails/findings.ts";
import type { Restored } from "./restore-ledger.ts";

/** Returns the report for an operator. */
export function restoredText(result: Restored): string {
  const { accounts, caps, differences, droppedAccounts, isDone, lost, notes, notKnown, open, projectId } =
    result;
  const { reservedMc, spentMc } = result.totals;
  return [
    `project ${projectId}: its ledger is ${lost}; the records have`,
    `  ${plural(accounts, "account")}, ${plural(droppedAccounts, "archived agent")} without one, ${plural(caps, "cap")}`,
    `  ${cents(usedCents(spentMc))} spent, ${cents(usedCents(reservedMc))} held`,
    `  ${plural(open.held, "payment")} on hold, ${String(open.sending)} to be sent or queried, ${String(open.following)} on their way, ${String(open.done)} whose events may not have been written`,
    ...notes.map((note) => `note: ${note}`),
    "not known:",
    ...notKnown.map((line) => `  ${line}`),
    ...(differences ?? []).map((difference) => `${differenceText(difference)}\n`),
    isDone
      ? verdict(differences?.length ?? 0)
      : "Nothing was done. With --yes the ledger is started from this.",
  ].join("\n");
}

const verdict = (differences: number): string =>
  differences === 0
    ? "The ledger runs, and everything agrees."
    : `The ledger runs; ${plural(differences, "difference")} in the organization.`;

/** Returns the result as one JSON object. */
export const restoredJson = (result: Restored): string =>
  JSON.stringify({ ...result, differences: result.differences?.map(shownDifference) ?? null });
