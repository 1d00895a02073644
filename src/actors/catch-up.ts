import { TimeoutError, withTimeout } from "../lib/with-timeout.ts";

/** How long a read waits for pending confirmations to reach the actor and the record, even where the actor is busy or unreachable. */
const CATCH_UP_MS = 2_000;

/** Waits for a flush, to a bound or as long as the caller can spare; then what there is has to do. */
export async function caughtUp(flush: Promise<unknown>, spareMs = CATCH_UP_MS): Promise<void> {
  try {
    await withTimeout(Math.min(spareMs, CATCH_UP_MS), flush);
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
  }
}
