import type { Ledger } from "./state.ts";

/** The part that was restored from the older backup. */
export type StaleBackup = "ledger" | "records";

/**
 * Whether ledger and records were restored from backups of different times, judged by the revisions that the caller knows; null:
 * they were not. A ledger that is behind would let be spent again what it has forgotten; records that are behind have lost
 * idempotency keys. Records that were not read just now say nothing: another server may have written newer ones.
 */
export function staleBackupOf(
  { recordedRevision, revision }: Pick<Ledger, "revision" | "recordedRevision">,
  known: { readonly ledger: number; readonly recorded: number; readonly isRead: boolean },
): StaleBackup | null {
  if (revision < Math.max(known.ledger, known.recorded)) return "ledger";
  return known.isRead && known.recorded < recordedRevision ? "records" : null;
}
