/**
 * Age by a stamp that another process may have made. A stamp much later than now comes from a clock that ran ahead:
 * its age is unknown and is not waited for, since its time may be days away.
 */

/** Clocks that are kept right differ by less. */
const AHEAD_MS = 60_000;

/** Whether something was stamped within the last so many milliseconds, as far as its stamp can be believed. */
export const isRecent = (stampedAt: Date, now: number, ageMs: number, aheadMs = AHEAD_MS): boolean => {
  const ms = now - stampedAt.getTime();
  return ms < ageMs && ms >= -aheadMs;
};

/** Matches the stamps in MongoDB of what is not young. */
export const notRecent = (now: number, ageMs: number, aheadMs = AHEAD_MS) => ({
  $not: { $gt: new Date(now - ageMs), $lte: new Date(now + aheadMs) },
});
