/**
 * How old something is, by a stamp that another process may have made. What is stamped much later than now was stamped by a clock that ran
 * ahead, or this one was set back: how old it is can't be known, and it is not waited for, since its time may be days away.
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
