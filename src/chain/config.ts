import type { Address, Hex } from "viem";

/** Gas prices that a transaction offers, in wei. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** A chain, and what of ours is on it. */
export interface ChainConfig {
  readonly rpcUrl: string;
  /** Used where the first endpoint has no answer; null: there is none. */
  readonly fallbackRpcUrl: string | null;
  readonly chainId: number;
  readonly token: Address;
  readonly tokenDecimals: number;
  readonly factory: Address;
  /** Blocks that a transaction must be in or under before it counts; 1: it is in the newest. */
  readonly confirmations: number;
  /** The poll interval while a caller waits for a block. */
  readonly pollMs: number;
  /** Null: as the chain suggests. On a local chain they are fixed, so that what was signed stays good on a fresh one. */
  readonly fixedFees: Fees | null;
  /** Never is more offered for a unit of gas, in wei, however high the chain's base fee rises. */
  readonly maxFeePerGas: bigint;
  /** Change that an agent's pocket is filled up to, and that the wallet's limit leaves beside its policy. */
  readonly pocketFloatCents: number;
}

/** A transaction as it is to be signed: EIP-1559, without value. */
export interface UnsignedTransaction {
  readonly chainId: number;
  readonly nonce: number;
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** The service's key on a chain; a key in this process, or later one that a KMS holds. */
export interface Signer {
  readonly address: Address;
  /** The raw transaction, ready to be sent. The same input may give other bytes; only what is recorded is sent. */
  sign(transaction: UnsignedTransaction): Promise<Hex>;
}

export const caip2Of = (chainId: number): string => `eip155:${String(chainId)}`;
