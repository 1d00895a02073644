import type { Fees } from "./config.ts";

/** What the chain asks for a unit of gas, in wei: what it burns, and what it suggests to add for the miner. */
export interface GasPrice {
  readonly baseFeePerGas: bigint;
  readonly tipPerGas: bigint;
}

/** Room for the base fee to rise before a transaction is mined: it can double in six full blocks. */
const BASE_FEE_FACTOR = 3n;
/** By how much the base fee rises from one block to the next at the most. */
const NEXT_BLOCK: Ratio = { of: 9n, per: 8n };
/** By how much both fees must rise for nodes to put a transaction in another one's place: most ask for a tenth. */
const REPLACEMENT: Ratio = { of: 9n, per: 8n };

interface Ratio {
  readonly of: bigint;
  readonly per: bigint;
}

/** What a transaction offers that is signed now, never more than is allowed for a unit of gas. */
export function offeredFor({ baseFeePerGas, tipPerGas }: GasPrice, mostPerGas: bigint): Fees {
  const maxFeePerGas = least(baseFeePerGas * BASE_FEE_FACTOR + tipPerGas, mostPerGas);
  return { maxFeePerGas, maxPriorityFeePerGas: least(tipPerGas, maxFeePerGas) };
}

/** What is to become of the fees of a transaction that waits. */
export type Raise =
  | { readonly kind: "raise"; readonly fees: Fees }
  /** They would do for the next block: it waits for something else. */
  | { readonly kind: "enough" }
  /** What it would take is more than is allowed. */
  | { readonly kind: "too dear" };

/**
 * Whether a transaction that waits offers too little by now, and what it is to offer instead under the same nonce: what
 * one does that is signed now, and at least so much more than before that nodes let it take the other's place.
 */
export function raiseOf(before: Fees, price: GasPrice, mostPerGas: bigint): Raise {
  const { baseFeePerGas, tipPerGas } = price;
  const forNextBlock = scaled(baseFeePerGas, NEXT_BLOCK) + tipPerGas;
  const isEnough = before.maxFeePerGas >= forNextBlock && before.maxPriorityFeePerGas >= tipPerGas;
  if (isEnough) return { kind: "enough" };
  const offered = offeredFor(price, mostPerGas);
  const maxFeePerGas = most(offered.maxFeePerGas, scaled(before.maxFeePerGas, REPLACEMENT));
  // Where not even the base fee could be paid, raising it would use up what room is left, for nothing.
  if (maxFeePerGas > mostPerGas || maxFeePerGas < baseFeePerGas) return { kind: "too dear" };
  const tip = most(offered.maxPriorityFeePerGas, scaled(before.maxPriorityFeePerGas, REPLACEMENT));
  return { kind: "raise", fees: { maxFeePerGas, maxPriorityFeePerGas: least(tip, maxFeePerGas) } };
}

const least = (one: bigint, other: bigint): bigint => (one < other ? one : other);
const most = (one: bigint, other: bigint): bigint => (one > other ? one : other);
/** Rounded up. */
const scaled = (amount: bigint, { of, per }: Ratio): bigint => (amount * of + per - 1n) / per;
