/**
 * Age by a timestamp that another process may have made. A timestamp far in the future comes from a fast clock: its age
 * is unknown and is not waited for, since its time may be days away.
 */

/** Maximum difference of well-kept clocks. */
const CLOCK_SKEW_MAX_MS = 60_000;

/** Whether something was stamped within the last `ageMs`, as far as its timestamp can be trusted. */
export const isRecent = (
  stampedAt: Date,
  now: number,
  ageMs: number,
  aheadMs = CLOCK_SKEW_MAX_MS,
): boolean => {
  const ms = now - stampedAt.getTime();
  return ms < ageMs && ms >= -aheadMs;
};

/** Returns a MongoDB condition for timestamps that are not recent. */
export const notRecent = (now: number, ageMs: number, aheadMs = CLOCK_SKEW_MAX_MS) => ({
  $not: { $gt: new Date(now - ageMs), $lte: new Date(now + aheadMs) },
});
