import { TimeoutError, withTimeout } from "../lib/with-timeout.ts";

/**
 * Maximum wait of a read for pending confirmations to reach the actor and the record, even where the actor is busy or
 * unreachable.
 */
const FLUSH_WAIT_MS = 2_000;

/** Waits for a flush, to a bound or as long as the caller can spare; then what there is has to do. */
export async function awaitFlush(flush: Promise<unknown>, spareMs = FLUSH_WAIT_MS): Promise<void> {
  try {
    await withTimeout(Math.min(spareMs, FLUSH_WAIT_MS), flush);
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
  }
}
