import type { Address, Hex } from "viem";

/** Gas prices offered by a transaction, in wei. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

export interface ChainConfig {
  readonly rpcUrl: string;
  /** Used if the first endpoint does not answer; null for none. */
  readonly fallbackRpcUrl: string | null;
  readonly chainId: number;
  readonly token: Address;
  readonly tokenDecimals: number;
  readonly factory: Address;
  /** Number of confirmations before a transaction counts; 1 means that it is in the newest block. */
  readonly confirmations: number;
  /** Poll interval while a caller waits for a block. */
  readonly pollMs: number;
  /** Null: as suggested by the chain. Fixed on a local chain, so that signed transactions stay valid on a fresh one. */
  readonly fixedFees: Fees | null;
  /** Maximum price per unit of gas, in wei, however high the chain's base fee. */
  readonly maxFeePerGas: bigint;
  /** Target balance of an agent's pocket, for which the wallet's limit leaves room beyond its policy. */
  readonly pocketFloatCents: number;
}

/** An unsigned EIP-1559 transaction without value. */
export interface UnsignedTransaction {
  readonly chainId: number;
  readonly nonce: number;
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** The service's key on a chain: in this process, or later in a KMS. */
export interface Signer {
  readonly address: Address;
  /** Returns the raw transaction, ready to be sent. Not necessarily deterministic; only recorded bytes are sent. */
  sign(transaction: UnsignedTransaction): Promise<Hex>;
}

export const caip2Of = (chainId: number): string => `eip155:${String(chainId)}`;
