import { TimeoutError, withTimeout } from "../lib/with-timeout.ts";

/** Maximum wait of a read for pending confirmations to reach actor and record. */
const FLUSH_WAIT_MS = 2_000;

/** Waits for a flush up to a timeout or the caller's spare time; then the caller uses what there is. */
export async function awaitFlush(flush: Promise<unknown>, spareMs = FLUSH_WAIT_MS): Promise<void> {
  try {
    await withTimeout(Math.min(spareMs, FLUSH_WAIT_MS), flush);
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
  }
}
