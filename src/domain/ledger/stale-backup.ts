import type { Ledger } from "./state.ts";

/** The part that was restored from the older backup. */
export type StaleBackup = "ledger" | "records";

/**
 * Returns whether ledger or records were restored from an older backup, judged by the revisions that the caller knows;
 * null if neither. A ledger that is behind would let forgotten amounts be spent again; records that are behind have
 * lost idempotency keys. Records that were not just read prove nothing, since another server may have written newer
 * ones.
 */
export function staleBackupOf(
  { recordedRevision, revision }: Pick<Ledger, "revision" | "recordedRevision">,
  known: { readonly ledger: number; readonly recorded: number; readonly isRead: boolean },
): StaleBackup | null {
  if (revision < Math.max(known.ledger, known.recorded)) return "ledger";
  return known.isRead && known.recorded < recordedRevision ? "records" : null;
}
