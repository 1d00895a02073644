/** A cent is a hundredth of a token. */
const CENT_DECIMALS = 2;

/** Cents in a token's smallest units. A token with fewer than two decimals cannot hold cents. */
export function unitsOf(cents: number, tokenDecimals: number): bigint {
  return BigInt(cents) * unitsPerCent(tokenDecimals);
}

/** Returns whole cents; a rest below a cent can't be spent and is not counted. */
export const centsOf = (units: bigint, tokenDecimals: number): number =>
  Number(units / unitsPerCent(tokenDecimals));

function unitsPerCent(tokenDecimals: number): bigint {
  if (tokenDecimals < CENT_DECIMALS) throw new RangeError("the token has no cents");
  return 10n ** BigInt(tokenDecimals - CENT_DECIMALS);
}

/** Decimals of a thousandth of a cent. */
const MC_DECIMALS = 5;

/** A number of thousandths of a cent in a token's smallest units, rounded up where the token can't hold that little. */
export function unitsOfMc(mc: number, tokenDecimals: number): bigint {
  const [multiplier, divisor] = scaleOf(tokenDecimals);
  return (BigInt(mc) * multiplier + divisor - 1n) / divisor;
}

/** Thousandths of a cent that a number of a token's smallest units is worth; a started one counts whole. */
export function mcOfUnits(units: bigint, tokenDecimals: number): number {
  const [multiplier, divisor] = scaleOf(tokenDecimals);
  return Number((units * divisor + multiplier - 1n) / multiplier);
}

const scaleOf = (tokenDecimals: number): readonly [multiplier: bigint, divisor: bigint] => {
  const more = tokenDecimals - MC_DECIMALS;
  return more >= 0 ? [10n ** BigInt(more), 1n] : [1n, 10n ** BigInt(-more)];
};
