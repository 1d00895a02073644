/** Money is integer cents, 0 or more, at most this. */
export const MAX_CENTS = 1_000_000_000_000;

/** Returns the rest of a limit; never negative, even if the limit was lowered below the used amount. */
export const remainingOf = (limitCents: number, usedCents: number): number =>
  Math.max(0, limitCents - usedCents);
