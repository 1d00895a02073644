import { differenceText, plural, shownDifference } from "../reconcile/text.ts";
import { usedCents } from "../../../src/domain/money.ts";
import type { Difference } from "../reconcile/difference.ts";
import { cents } from "../../../src/rails/findings.ts";
import type { Restored, RestoredAll } from "./restore-ledger.ts";

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
    isDone ? verdict(differences) : "Nothing was done. With --yes the ledger is started from this.",
  ].join("\n");
}

function verdict(differences: readonly Difference[] | null): string {
  if (differences === null) return "The ledger runs.";
  return differences.length === 0
    ? "The ledger runs, and everything agrees."
    : `The ledger runs; ${plural(differences.length, "difference")} in the organization.`;
}

export const restoredAllText = ({ refused, restored }: RestoredAll): string =>
  [
    ...restored.map((each) => `${restoredText(each)}\n`),
    ...refused.map(({ projectId, reason }) => `project ${projectId}: ${reason}\n`),
    `${plural(restored.length, "ledger")} lost or behind the records, ${String(refused.length)} of others not restored.`,
  ].join("\n");

export const restoredJson = (result: Restored): string =>
  JSON.stringify({ ...result, differences: result.differences?.map(shownDifference) ?? null });
