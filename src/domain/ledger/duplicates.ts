import { similarPayments } from "./closed-keys.ts";
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

/** Where the caller finds the payment that a new one may duplicate. */
export type PossibleDuplicate =
  | { readonly kind: "open"; readonly transactionId: string }
  /** In the records, under this key; what became of it is known only there. */
  | { readonly kind: "closed"; readonly keyHash: string }
  /** In the records, if anywhere: keys that recent were evicted. */
  | { readonly kind: "unknown" };

/** The newest payment that a new one of this fingerprint may duplicate; null: there is none. */
export function possibleDuplicate(
  { keys }: Pick<Ledger, "keys">,
  account: Account,
  fingerprint: string,
  now: number,
): PossibleDuplicate | null {
  const since = now - DUPLICATE_WINDOW_MS;
  const evictedAt = account.evictedThrough > 0 ? keys.evictedCreatedAt : 0;
  let newestAt = since;
  let newest: PossibleDuplicate | null = null;
  for (const { createdAt, keyHash, open } of similarPayments(keys, account, fingerprint)) {
    if (createdAt < newestAt || open?.status === "failed") continue;
    newestAt = createdAt;
    newest =
      open === null
        ? { kind: "closed", keyHash }
        : { kind: "open", transactionId: open.request.transactionId };
  }
  return evictedAt >= newestAt ? { kind: "unknown" } : newest;
}
