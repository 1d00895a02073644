import { moneyOf, type StoredPayment } from "./payment.ts";
import { usedCents } from "../money.ts";
import type { Account, AccountSummary } from "./state.ts";

/**
 * The decision to send a payment reserves the account's next revision for the charge of that payment in full; every
 * other change takes the revision after it. So a process that learns of the charge writes the agent's record before the
 * ledger does, and confirms both in one update.
 */

/** The record's totals once the newest payment is charged in full. */
export interface OnceCharged {
  readonly transactionId: string;
  readonly spentCents: number;
  readonly reservedCents: number;
}

/** Whether a changed payment is the charge that its account foresees. */
export function isForeseenCharge(account: Account, before: StoredPayment, after: StoredPayment): boolean {
  if (account.foreseenSequence !== after.sequence) return false;
  const [had, has] = [moneyOf(before), moneyOf(after)];
  return had.spentMc === 0 && has.heldMc === 0 && has.spentMc === had.heldMc;
}

/** Returns the totals after the foreseen charge; an empty object if the account foresees none. */
export function onceCharged({ foreseenSequence, open, usage }: Account): Pick<AccountSummary, "onceCharged"> {
  if (foreseenSequence === 0) return {};
  for (const { payment } of open.values()) {
    if (payment.sequence !== foreseenSequence) continue;
    const { heldMc } = moneyOf(payment);
    const spentCents = usedCents(usage.spentMc + heldMc);
    const reservedCents = usedCents(usage.reservedMc - heldMc);
    return { onceCharged: { transactionId: payment.request.transactionId, spentCents, reservedCents } };
  }
  return {};
}

/** Returns the summary after the foreseen charge; the same summary if it foresees none. */
export function afterCharge(summary: AccountSummary): AccountSummary {
  const { onceCharged: charged, ...rest } = summary;
  if (charged === undefined) return summary;
  const { reservedCents, spentCents } = charged;
  return { ...rest, spentCents, reservedCents, revision: summary.revision + 1 };
}
