import { ApplicationFailure } from "@temporalio/workflow";
import type { StaleBackup } from "../src/domain/ledger/stale-backup.ts";
import { STALE, type BatchRefusal, REFUSED } from "../src/messages/guards/batch-refusals.ts";

/**
 * Throws a refusal in an update's validator, which must be synchronous. A refused update leaves no history, and its
 * sender gets the reason.
 */
export function refuse(refusal: BatchRefusal | null): void {
  if (refusal === null) return;
  const { indexes } = refusal;
  const what = indexes.length === 0 ? "such a batch" : `its commands ${indexes.join(", ")}`;
  const message = `this version does not know ${what}`;
  throw ApplicationFailure.create({ type: REFUSED, message, nonRetryable: true, details: [refusal] });
}

/** Refuses updates if the ledger or the records are from a backup, since nothing may be decided then. */
export function refuseStaleBackup(stale: StaleBackup | null): void {
  if (stale === null) return;
  throw ApplicationFailure.create({
    type: STALE[stale],
    message: `the ${stale === "ledger" ? "ledger is behind its records" : "records are behind the ledger"}`,
    nonRetryable: true,
  });
}
