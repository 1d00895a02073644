import type { Unavailable } from "../lib/unavailable.ts";
import {
  type Address,
  BaseError,
  BlockNotFoundError,
  createPublicClient,
  erc20Abi,
  type Hash,
  type Hex,
  http,
  type PublicClient,
  TransactionNotFoundError,
  TransactionReceiptNotFoundError,
} from "viem";
import { withTimeout } from "../lib/with-timeout.ts";
import type { ChainConfig, Fees } from "./config.ts";
import { type GasPrice, offeredFor } from "./fees.ts";
import { fetchCompleteBatches } from "./complete-batches.ts";
import { PlainError } from "../lib/plain-error.ts";

/** One call to the chain; what takes longer is no answer. */
const CALL_MS = 2_000;
/** Calls of one moment go in one HTTP request, so many at the most. */
const CALLS_PER_REQUEST_MAX = 100;
/** The TTL of the cached gas price. */
const PRICE_CACHE_MS = 2_000;

/**
 * The chain gave no usable answer. The message is for operators and names no address: an RPC URL often carries a key, and
 * failures of activities are stored in histories.
 */
export class ChainUnreachable extends PlainError implements Unavailable {
  override readonly name = "ChainUnreachable";
  readonly isUnavailable = true;
}

/** Another chain answers under the configured address. */
export class WrongChain extends PlainError implements Unavailable {
  override readonly name = "WrongChain";
  readonly isUnavailable = true;
}

/** The chain at one block. */
export interface Head {
  readonly blockNumber: bigint;
}

export interface Receipt {
  /** It was not undone; which does not mean that there was a contract which did anything. */
  readonly succeeded: boolean;
  readonly logs: readonly { readonly address: Address; readonly topics: readonly Hex[] }[];
  readonly blockNumber: bigint;
  readonly hash: Hash;
}

/** Which transaction of an account a block has under a nonce. */
export interface MinedTransaction {
  readonly hash: Hash;
  readonly blockNumber: bigint;
}

/** A transaction as the chain has it. */
export interface FoundTransaction {
  readonly data: Hex;
  readonly from: Address;
  /** Null where it makes a contract. */
  readonly to: Address | null;
  /** Null: not mined. */
  readonly blockNumber: bigint | null;
}

/** The calls to a chain, each with a timeout. Throws `ChainUnreachable` where one has no answer. */
export class ChainRpc {
  readonly client: PublicClient;
  readonly #config: ChainConfig;
  #price: { readonly price: Promise<GasPrice>; readonly until: number } | null = null;
  #checked: Promise<void> | null = null;

  constructor(config: ChainConfig) {
    this.#config = config;
    const transport = http(config.rpcUrl, {
      batch: { batchSize: CALLS_PER_REQUEST_MAX },
      fetchFn: fetchCompleteBatches,
      retryCount: 0,
      timeout: CALL_MS,
    });
    this.client = createPublicClient({ transport, cacheTime: 0, pollingInterval: config.pollMs });
  }

  /** Asks once, and until it was answered, whether this is the chain that was configured; throws `WrongChain`. */
  check(): Promise<void> {
    this.#checked ??= this.#check().catch((error: unknown) => {
      this.#checked = null;
      throw error;
    });
    return this.#checked;
  }

  async head(): Promise<Head> {
    return { blockNumber: await this.answer(this.client.getBlockNumber()) };
  }

  /** How many transactions of an account are in the chain, as of a block, or now. */
  nonceAt(address: Address, blockNumber: bigint | "latest"): Promise<number> {
    const at = blockNumber === "latest" ? { blockTag: blockNumber } : { blockNumber };
    return this.answer(this.client.getTransactionCount({ address, ...at }));
  }

  /**
   * How many transactions of an account have as many confirmations as the configuration asks for, and up to which block
   * they count; null: the newest.
   */
  async confirmed(address: Address): Promise<{ readonly nonce: number; readonly through: bigint | null }> {
    const { confirmations } = this.#config;
    if (confirmations === 1) return { nonce: await this.nonceAt(address, "latest"), through: null };
    const { blockNumber } = await this.head();
    const through = blockNumber - BigInt(confirmations - 1);
    return { nonce: through < 0n ? 0 : await this.nonceAt(address, through), through };
  }

  /** The hash of a block, which covers everything up to it; null: the chain has no such block. */
  async blockHash(blockNumber: bigint): Promise<Hash | null> {
    try {
      const { hash, number } = await withTimeout(CALL_MS, this.client.getBlock({ blockNumber }));
      if (number !== blockNumber) throw new ChainUnreachable("the chain answered another question");
      return hash;
    } catch (error) {
      if (error instanceof BlockNotFoundError) return null;
      throw unreachable(error);
    }
  }

  /** The token balance of a wallet, in the token's units, as of a block, or now. */
  balanceAt(wallet: Address, blockNumber: bigint | "latest"): Promise<bigint> {
    const at = blockNumber === "latest" ? { blockTag: blockNumber } : { blockNumber };
    const read = { address: this.#config.token, abi: erc20Abi, functionName: "balanceOf" } as const;
    return this.answer(this.client.readContract({ ...read, args: [wallet], ...at }));
  }

  async hasCode(address: Address): Promise<boolean> {
    const code = await this.answer(this.client.getCode({ address }));
    return code !== undefined && code !== "0x";
  }

  /** What a transaction is to offer that is signed now. */
  async fees(): Promise<Fees> {
    const { fixedFees, maxFeePerGas } = this.#config;
    return fixedFees ?? offeredFor(await this.gasPrice(), maxFeePerGas);
  }

  /** May be some seconds old. */
  gasPrice(): Promise<GasPrice> {
    const now = performance.now();
    if (this.#price !== null && now < this.#price.until) return this.#price.price;
    const price = this.#readPrice();
    this.#price = { price, until: now + PRICE_CACHE_MS };
    price.catch(() => {
      this.#price = null;
    });
    return price;
  }

  /**
   * Which transaction of an account a block has under a nonce; null: none, or the chain no longer says what was in that
   * block.
   */
  async minedIn(blockNumber: bigint, address: Address, nonce: number): Promise<MinedTransaction | null> {
    const block = await this.answer(this.client.getBlock({ blockNumber, includeTransactions: true }));
    if (block.number !== blockNumber) throw new ChainUnreachable("the chain answered another question");
    const found = block.transactions.find(
      (each) => each.nonce === nonce && each.from.toLowerCase() === address.toLowerCase(),
    );
    return found === undefined ? null : { hash: found.hash, blockNumber };
  }

  /** The receipt of a transaction in the current chain; null: it is not in it. */
  async receipt(hash: Hash): Promise<Receipt | null> {
    try {
      const found = await withTimeout(CALL_MS, this.client.getTransactionReceipt({ hash }));
      // A proxy that has mixed up answers must not make one payment's end another's.
      if (found.transactionHash !== hash) throw new ChainUnreachable("the chain answered another question");
      const { blockNumber, logs, status } = found;
      return { succeeded: status === "success", blockNumber, logs, hash };
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return null;
      throw unreachable(error);
    }
  }

  /** The data of a transaction, and the block that it is in; null: the chain has no such transaction. */
  async transaction(hash: Hash): Promise<FoundTransaction | null> {
    try {
      const found = await withTimeout(CALL_MS, this.client.getTransaction({ hash }));
      if (found.hash !== hash) throw new ChainUnreachable("the chain answered another question");
      const { blockNumber, from, input: data, to } = found;
      return { data, from, to, blockNumber };
    } catch (error) {
      if (error instanceof TransactionNotFoundError) return null;
      throw unreachable(error);
    }
  }

  /**
   * Broadcasts a signed transaction. Whatever the chain says to it (it has it already, it is mined already, it can't pay for gas
   * now), what counts is what the chain's nonce says later, so an objection is an answer: its text.
   */
  async send(raw: Hex): Promise<string | null> {
    try {
      await withTimeout(CALL_MS, this.client.sendRawTransaction({ serializedTransaction: raw }));
      return null;
    } catch (error) {
      return reasonOf(error);
    }
  }

  /** Bounds a call that is made with `client` directly, and hides where it went. */
  async answer<T>(call: Promise<T>): Promise<T> {
    try {
      return await withTimeout(CALL_MS, call);
    } catch (error) {
      throw unreachable(error);
    }
  }

  async #readPrice(): Promise<GasPrice> {
    const [block, tipPerGas] = await Promise.all([
      this.answer(this.client.getBlock()),
      this.answer(this.client.estimateMaxPriorityFeePerGas()),
    ]);
    return { baseFeePerGas: block.baseFeePerGas ?? 0n, tipPerGas };
  }

  async #check(): Promise<void> {
    const { chainId } = this.#config;
    const found = await this.answer(this.client.getChainId());
    if (found === chainId) return;
    throw new WrongChain(`the chain at EVM_RPC_URL has the id ${String(found)}, not ${String(chainId)}`);
  }
}

const unreachable = (error: unknown): ChainUnreachable =>
  error instanceof ChainUnreachable
    ? error
    : new ChainUnreachable(`the chain did not answer: ${reasonOf(error)}`);

/** The kind of an error and its first line. viem puts the URL on further lines, and in `cause`. */
function reasonOf(error: unknown): string {
  if (error instanceof BaseError)
    return `${error.name}: ${(error.shortMessage.split("\n")[0] ?? "").slice(0, 200)}`;
  return error instanceof Error ? error.name : "unknown";
}
