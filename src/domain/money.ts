/** Money is integer cents, 0 or more, at most this. */
export const MAX_CENTS = 1_000_000_000_000;

/** What is left of a limit; never negative, also after the limit was lowered under what is used. */
export const remainingOf = (limitCents: number, usedCents: number): number =>
  Math.max(0, limitCents - usedCents);
