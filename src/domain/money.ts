/** Maximum amount in requests and responses, in integer cents. */
export const MAX_CENTS = 1_000_000_000_000;

/** Payments and totals are counted in thousandths of a cent (`Mc`): prices on the web are often below a cent. */
export const MC_PER_CENT = 1_000;
const MC_PER_DOLLAR = 100 * MC_PER_CENT;

export const MAX_MC = MAX_CENTS * MC_PER_CENT;

/** Upper bound of a project's totals, within which arithmetic on them is exact. */
export const MAX_TOTAL_MC = 8 * MAX_MC;

export const mcOf = (cents: number): number => cents * MC_PER_CENT;

/** Rounds used amounts up to whole cents. */
export const usedCents = (mc: number): number => Math.ceil(mc / MC_PER_CENT);

/** Rounds remaining amounts down to whole cents. */
export const leftCents = (mc: number): number => Math.floor(mc / MC_PER_CENT);

/** Returns the remainder of a limit; never negative, even if the limit was lowered below the used amount. */
export const remainingOf = (limitCents: number, usedMc: number): number =>
  Math.max(0, leftCents(mcOf(limitCents) - usedMc));

/** Formats an amount in dollars, with two decimals, or more for fractions of a cent: `12.30`, `0.001`. */
export function decimalOf(mc: number): string {
  const [whole, rest] = [Math.floor(mc / MC_PER_DOLLAR), mc % MC_PER_DOLLAR];
  const decimals = String(rest)
    .padStart(5, "0")
    .replace(/0{1,3}$/, "");
  return `${String(whole)}.${decimals}`;
}
