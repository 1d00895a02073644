import { newestSimilar } from "./closed-keys.ts";
import type { TransactionStatus } from "./payment.ts";
import type { Account, Ledger } from "./state.ts";

/**
 * Maximum age of an earlier payment with the same rail, recipient and amount that makes a new one a possible duplicate.
 */
export const DUPLICATE_WINDOW_MS = 10 * 60 * 1_000;

/** Statuses of payments that can have a duplicate: neither denied, failed nor cancelled. */
export const DUPLICATED_STATUSES = [
  "pending",
  "approved",
  "reversed",
  "expired",
] as const satisfies readonly TransactionStatus[];

export const canHaveDuplicate = (status: TransactionStatus): boolean =>
  DUPLICATED_STATUSES.some((each) => each === status);

/** Location of the payment that a new one may duplicate. */
export type PossibleDuplicate =
  | { readonly kind: "open"; readonly transactionId: string }
  /** A record under this key; only the record shows its outcome. */
  | { readonly kind: "closed"; readonly keyHash: string }
  /** Possibly a record: keys as recent as that were evicted. */
  | { readonly kind: "unknown" };

/** Returns the newest payment that a new one with this fingerprint may duplicate; null if there is none. */
export function possibleDuplicate(
  { keys }: Pick<Ledger, "keys">,
  account: Account,
  fingerprint: string,
  now: number,
): PossibleDuplicate | null {
  const since = now - DUPLICATE_WINDOW_MS;
  const newest = newestSimilar(keys, account, fingerprint, canHaveDuplicate);
  const newestAt = newest === null ? since : Math.max(since, newest.createdAt);
  if (account.evictedThrough > 0 && keys.evictedCreatedAt >= newestAt) return { kind: "unknown" };
  if (newest === null || newest.createdAt < since) return null;
  const { keyHash, open } = newest;
  return open === null
    ? { kind: "closed", keyHash }
    : { kind: "open", transactionId: open.request.transactionId };
}
