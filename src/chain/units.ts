/** A cent is a hundredth of a token. */
const CENT_DECIMALS = 2;

/** Converts cents to a token's smallest units. Throws for a token with fewer than two decimals, which has no cents. */
export function unitsOf(cents: number, tokenDecimals: number): bigint {
  return BigInt(cents) * unitsPerCent(tokenDecimals);
}

/** Converts a token's units to whole cents; a fraction of a cent cannot be spent and is dropped. */
export const centsOf = (units: bigint, tokenDecimals: number): number =>
  Number(units / unitsPerCent(tokenDecimals));

function unitsPerCent(tokenDecimals: number): bigint {
  if (tokenDecimals < CENT_DECIMALS) throw new RangeError("the token has no cents");
  return 10n ** BigInt(tokenDecimals - CENT_DECIMALS);
}

/** Decimals of a thousandth of a cent. */
const MC_DECIMALS = 5;

/** Converts thousandths of a cent to a token's smallest units, rounded up. */
export function unitsOfMc(mc: number, tokenDecimals: number): bigint {
  const [multiplier, divisor] = scaleOf(tokenDecimals);
  return (BigInt(mc) * multiplier + divisor - 1n) / divisor;
}

/** Converts a token's smallest units to thousandths of a cent, rounded up. */
export function mcOfUnits(units: bigint, tokenDecimals: number): number {
  const [multiplier, divisor] = scaleOf(tokenDecimals);
  return Number((units * divisor + multiplier - 1n) / multiplier);
}

const scaleOf = (tokenDecimals: number): readonly [multiplier: bigint, divisor: bigint] => {
  const more = tokenDecimals - MC_DECIMALS;
  return more >= 0 ? [10n ** BigInt(more), 1n] : [1n, 10n ** BigInt(-more)];
};
