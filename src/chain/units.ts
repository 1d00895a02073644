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
