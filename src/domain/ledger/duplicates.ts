import { newestSimilar } from "./closed-keys.ts";
import type { TransactionStatus } from "./payment.ts";
import type { Account, Ledger } from "./state.ts";

/** Age up to which an earlier payment of the same rail, recipient and amount makes a new one a possible duplicate. */
export const DUPLICATE_WINDOW_MS = 10 * 60 * 1_000;

/** The statuses of payments that can have a duplicate: those that were not denied, failed or cancelled. */
export const DUPLICATED_STATUSES = [
  "pending",
  "approved",
  "reversed",
  "expired",
] as const satisfies readonly TransactionStatus[];

export const canHaveDuplicate = (status: TransactionStatus): boolean =>
  DUPLICATED_STATUSES.some((each) => each === status);

/** Place of the payment that a new one may duplicate. */
export type PossibleDuplicate =
  | { readonly kind: "open"; readonly transactionId: string }
  /** A record under this key; only the record has its outcome. */
  | { readonly kind: "closed"; readonly keyHash: string }
  /** Possibly a record: keys that recent were evicted. */
  | { readonly kind: "unknown" };

/** The newest payment that a new one of this fingerprint may duplicate; null: there is none. */
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
