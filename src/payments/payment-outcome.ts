import { withTimeout } from "../lib/with-timeout.ts";
import type { PaymentChanges } from "./payment-changes.ts";
import type { RecordedPayment } from "./payments.ts";

/** So many calls may wait in a process; further ones are answered at once. */
const WAITING_MAX = 10_000;
/** Once a person has decided, its end on the rail is waited for so long at the most. */
const FINALITY_MS = 5_000;
/** A record that can't be read in so long is not waited for: the payment is answered as it was known. */
const READ_MS = 1_000;

/** What an outcome is waited for with. */
export interface OutcomeDependencies {
  readonly changes: PaymentChanges;
  /** The payment's records as they are now. */
  readonly read: () => Promise<RecordedPayment>;
  readonly onError: (error: unknown) => void;
}

/**
 * The payment once nothing is to be waited for any more: it was decided and came to its end, so long has passed, or the
 * process is about to end. Answers at once where it is at its end already. Never throws: what can't be read is answered as it
 * was known.
 */
export async function outcomeOf(
  payment: RecordedPayment,
  withinMs: number,
  { changes, onError, read }: OutcomeDependencies,
): Promise<RecordedPayment> {
  let until = performance.now() + withinMs;
  let known = payment;
  let stage: WaitStage = stageOf(known);
  if (stage === "ended" || withinMs <= 0 || changes.waiting >= WAITING_MAX) return payment;
  const watch = await changes.watch(payment.transaction._id);
  try {
    for (;;) {
      known = { ...(await withTimeout(READ_MS, read())), replayed: payment.replayed };
      const before: WaitStage = stage;
      stage = stageOf(known);
      const now = performance.now();
      if (stage !== before && stage === "decided") until = Math.min(until, now + FINALITY_MS);
      if (stage === "ended" || now >= until || changes.isOver) return known;
      await watch.changed(until - now);
    }
  } catch (error) {
    onError(error);
    return known;
  } finally {
    watch.end();
  }
}

/** The stage of a payment, as far as waiting for it is concerned. */
type WaitStage = "open" | "decided" | "ended";

function stageOf({ approval, transaction }: RecordedPayment): WaitStage {
  if (transaction.status !== "pending") return "ended";
  return (approval?.resolution ?? null) === null ? "open" : "decided";
}
