import { Context } from "@temporalio/activity";

/** The SDK sends a heartbeat every 4 s at most. */
const BEAT_MS = 2_000;

/**
 * Sends heartbeats of the current activity while the work goes on, so that another worker takes over soon after they
 * stop. Throws once the activity is cancelled, such as by its worker's end.
 */
export async function withHeartbeats<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), BEAT_MS);
  try {
    return await Promise.race([work(), context.cancelled]);
  } finally {
    clearInterval(timer);
  }
}
