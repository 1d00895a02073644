import type { Fees } from "./config.ts";

/** The chain's gas prices in wei: the base fee and the suggested tip. */
export interface GasPrice {
  readonly baseFeePerGas: bigint;
  readonly tipPerGas: bigint;
}

/** Room for the base fee to rise before a transaction is mined: it can double in six full blocks. */
const BASE_FEE_FACTOR = 3n;
/** Largest rise of the base fee from one block to the next. */
const NEXT_BLOCK: Ratio = { of: 9n, per: 8n };
/** Rise of both fees for which nodes replace a transaction: most require a tenth. */
const REPLACEMENT: Ratio = { of: 9n, per: 8n };

interface Ratio {
  readonly of: bigint;
  readonly per: bigint;
}

/** Returns the fees of a new transaction, within the allowed maximum. */
export function offeredFor({ baseFeePerGas, tipPerGas }: GasPrice, mostPerGas: bigint): Fees {
  const maxFeePerGas = least(baseFeePerGas * BASE_FEE_FACTOR + tipPerGas, mostPerGas);
  return { maxFeePerGas, maxPriorityFeePerGas: least(tipPerGas, maxFeePerGas) };
}

export type Raise =
  | { readonly kind: "raise"; readonly fees: Fees }
  /** The fees suffice for the next block: the transaction waits for something else. */
  | { readonly kind: "enough" }
  /** Sufficient fees would exceed the maximum. */
  | { readonly kind: "too dear" };

/**
 * Decides whether a waiting transaction now offers too little, and its new fees under the same nonce: those of a
 * transaction signed now, raised at least enough for nodes to accept the replacement.
 */
export function raiseOf(before: Fees, price: GasPrice, mostPerGas: bigint): Raise {
  const { baseFeePerGas, tipPerGas } = price;
  const forNextBlock = scaled(baseFeePerGas, NEXT_BLOCK) + tipPerGas;
  const isEnough = before.maxFeePerGas >= forNextBlock && before.maxPriorityFeePerGas >= tipPerGas;
  if (isEnough) return { kind: "enough" };
  const offered = offeredFor(price, mostPerGas);
  const maxFeePerGas = most(offered.maxFeePerGas, scaled(before.maxFeePerGas, REPLACEMENT));
  // If not even the base fee could be paid, a raise would waste the remaining room.
  if (maxFeePerGas > mostPerGas || maxFeePerGas < baseFeePerGas) return { kind: "too dear" };
  const tip = most(offered.maxPriorityFeePerGas, scaled(before.maxPriorityFeePerGas, REPLACEMENT));
  return { kind: "raise", fees: { maxFeePerGas, maxPriorityFeePerGas: least(tip, maxFeePerGas) } };
}

const least = (one: bigint, other: bigint): bigint => (one < other ? one : other);
const most = (one: bigint, other: bigint): bigint => (one > other ? one : other);
/** Scales an amount, rounded up. */
const scaled = (amount: bigint, { of, per }: Ratio): bigint => (amount * of + per - 1n) / per;
