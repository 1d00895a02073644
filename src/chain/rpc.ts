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
  RpcRequestError,
  TransactionNotFoundError,
  TransactionReceiptNotFoundError,
} from "viem";
import { withTimeout } from "../lib/with-timeout.ts";
import type { ChainConfig, Fees } from "./config.ts";
import { type GasPrice, offeredFor } from "./fees.ts";
import { BatchingFetch, CALLS_PER_REQUEST_MAX } from "./batching-fetch.ts";
import { withMargin } from "./contracts.ts";
import { plainText } from "./provider-text.ts";
import { Endpoints } from "./endpoints.ts";
import type { ChainWatchers } from "./repairs.ts";
import { revertTextOf } from "./reverts.ts";
import { PlainError } from "../lib/plain-error.ts";

/** Timeout of one call to the chain. */
const CALL_TIMEOUT_MS = 2_000;
/** Maximum transactions broadcast in one request: a busy node accepts this many well within `CALL_TIMEOUT_MS`. */
const BROADCAST_PER_REQUEST_MAX = 16;
/** Broadcasts of the same transactions before they are left to the keeper. */
const BROADCASTS_MAX = 2;
const PRICE_CACHE_TTL_MS = 2_000;
/**
 * Maximum age, in blocks, of the state that finality reads. A pruning node keeps the states of 128 blocks; the search
 * for the block in which a nonce was used goes back the same distance again.
 */
const STATE_AGE_MAX = 64n;

/**
 * The chain gave no usable answer. The message is for operators and names no address: an RPC URL often contains a key,
 * and activities' failures are stored in histories.
 */
export class ChainUnreachable extends PlainError implements Unavailable {
  override readonly name = "ChainUnreachable";
  readonly isUnavailable = true;
}

/** Another chain answers at the configured address. */
export class WrongChain extends PlainError implements Unavailable {
  override readonly name = "WrongChain";
  readonly isUnavailable = true;
}

export interface Head {
  readonly blockNumber: bigint;
}

export interface Receipt {
  /** Whether the transaction was not reverted, which does not mean that a contract did anything. */
  readonly succeeded: boolean;
  readonly logs: readonly { readonly address: Address; readonly topics: readonly Hex[] }[];
  readonly blockNumber: bigint;
  readonly gasUsed: bigint;
  readonly hash: Hash;
}

/** A call simulated without an effect. */
export interface TriedCall {
  readonly from: Address;
  readonly to: Address;
  readonly data: Hex;
  /** If missing, as much as the node allows. */
  readonly gas?: bigint;
}

export type Simulated =
  | { readonly kind: "passes"; readonly data: Hex }
  /** Message of the contract or node; may be empty. */
  | { readonly kind: "reverts"; readonly text: string }
  /** The node answered with an error that says nothing about the call. */
  | { readonly kind: "unclear"; readonly error: ChainUnreachable };

/** Nonce of an account below which each nonce is used, and the last block that has all its confirmations. */
export interface Confirmed {
  /** Nonce in block `through`; a lower bound if read in the oldest block whose state finality reads. */
  readonly nonce: number;
  /** Null for the newest block. */
  readonly through: bigint | null;
  /** Block in which `nonce` was read; null for the newest. */
  readonly readAt: bigint | null;
}

/** The newest block with all its confirmations. */
export interface FinalBlock {
  readonly number: bigint;
  /** Epoch seconds. */
  readonly timestamp: bigint;
  /** This block, or the oldest one whose state finality reads, if that is newer. */
  readonly stateAt: bigint;
}

/** An account's transaction under a nonce, in a block. */
export interface MinedTransaction {
  readonly hash: Hash;
  readonly blockNumber: bigint;
}

export interface FoundTransaction {
  readonly data: Hex;
  readonly from: Address;
  /** Null if the transaction creates a contract. */
  readonly to: Address | null;
  /** Null if not mined. */
  readonly blockNumber: bigint | null;
}

const SILENT: ChainWatchers = { onRepair: () => undefined, onWarning: () => undefined };

/** Calls to a chain, each with a timeout. Throws `ChainUnreachable` if a call has no answer. */
export class ChainRpc {
  readonly client: PublicClient;
  readonly endpoints: Endpoints;
  readonly #config: ChainConfig;
  readonly #urls: readonly string[];
  readonly #batching: BatchingFetch;
  #price: { readonly price: Promise<GasPrice>; readonly until: number } | null = null;
  #checked: Promise<void> | null = null;

  constructor(config: ChainConfig, { onRepair, onWarning }: ChainWatchers = SILENT) {
    this.#config = config;
    const { chainId, confirmations, fallbackRpcUrl, rpcUrl } = config;
    const urls = [rpcUrl, ...(fallbackRpcUrl === null ? [] : [fallbackRpcUrl])] as const;
    this.#urls = urls;
    this.endpoints = new Endpoints({ urls, chainId, confirmations, onRepair, onWarning });
    this.#batching = new BatchingFetch({
      post: this.endpoints.fetch,
      onRefused: (calls, next, cause) =>
        onWarning("the chain's endpoint refuses a batch of calls; smaller ones are sent from now on", {
          calls,
          next,
          cause: this.#plain(cause),
        }),
    });
    const transport = http(config.rpcUrl, {
      batch: { batchSize: CALLS_PER_REQUEST_MAX },
      fetchFn: this.#batching.fetch,
      retryCount: 0,
      timeout: CALL_TIMEOUT_MS,
    });
    this.client = createPublicClient({ transport, cacheTime: 0, pollingInterval: config.pollMs });
  }

  /** Verifies, until the first answer, that this is the configured chain; throws `WrongChain` otherwise. */
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

  /** Returns an account's number of transactions as of a block, or now; `pending` includes those not mined yet. */
  nonceAt(address: Address, blockNumber: bigint | "latest" | "pending"): Promise<number> {
    const at = typeof blockNumber === "string" ? { blockTag: blockNumber } : { blockNumber };
    return this.answer(this.client.getTransactionCount({ address, ...at }));
  }

  /** Returns an account's transactions with the configured number of confirmations. */
  async confirmed(address: Address): Promise<Confirmed> {
    const { confirmations } = this.#config;
    if (confirmations === 1) {
      return { nonce: await this.nonceAt(address, "latest"), through: null, readAt: null };
    }
    const { blockNumber } = await this.head();
    const depth = BigInt(confirmations - 1);
    const readAt = blockNumber - (depth < STATE_AGE_MAX ? depth : STATE_AGE_MAX);
    const nonce = readAt < 0n ? 0 : await this.nonceAt(address, readAt);
    return { nonce, through: blockNumber - depth, readAt };
  }

  /** Returns the newest final block; null if the chain is not long enough. */
  async finalBlock(): Promise<FinalBlock | null> {
    const depth = BigInt(this.#config.confirmations - 1);
    if (depth === 0n) {
      const { number, timestamp } = await this.answer(this.client.getBlock());
      return { number, timestamp, stateAt: number };
    }
    const { blockNumber } = await this.head();
    const number = blockNumber - depth;
    if (number < 0n) return null;
    const block = await this.answer(this.client.getBlock({ blockNumber: number }));
    if (block.number !== number) throw new ChainUnreachable("the chain answered a different request");
    const stateAt = blockNumber - (depth < STATE_AGE_MAX ? depth : STATE_AGE_MAX);
    return { number, timestamp: block.timestamp, stateAt };
  }

  /** Returns a block's hash, which covers everything up to it; null if the chain has no such block. */
  async blockHash(blockNumber: bigint): Promise<Hash | null> {
    try {
      const { hash, number } = await withTimeout(CALL_TIMEOUT_MS, this.client.getBlock({ blockNumber }));
      if (number !== blockNumber) throw new ChainUnreachable("the chain answered a different request");
      return hash;
    } catch (error) {
      if (error instanceof BlockNotFoundError) return null;
      throw this.#unreachable(error);
    }
  }

  /** Returns a wallet's token balance in the token's units, as of a block, or now. */
  balanceAt(wallet: Address, blockNumber: bigint | "latest"): Promise<bigint> {
    const at = blockNumber === "latest" ? { blockTag: blockNumber } : { blockNumber };
    const read = { address: this.#config.token, abi: erc20Abi, functionName: "balanceOf" } as const;
    return this.answer(this.client.readContract({ ...read, args: [wallet], ...at }));
  }

  async hasCode(address: Address): Promise<boolean> {
    const code = await this.answer(this.client.getCode({ address }));
    return code !== undefined && code !== "0x";
  }

  async fees(): Promise<Fees> {
    const { fixedFees, maxFeePerGas } = this.#config;
    return fixedFees ?? offeredFor(await this.gasPrice(), maxFeePerGas);
  }

  /** May be some seconds old. */
  gasPrice(): Promise<GasPrice> {
    const now = performance.now();
    if (this.#price !== null && now < this.#price.until) return this.#price.price;
    const price = this.#readPrice();
    this.#price = { price, until: now + PRICE_CACHE_TTL_MS };
    price.catch(() => {
      this.#price = null;
    });
    return price;
  }

  /** Returns a block's transaction of an account under a nonce; null if none, or if the block's contents are gone. */
  async minedIn(blockNumber: bigint, address: Address, nonce: number): Promise<MinedTransaction | null> {
    const block = await this.answer(this.client.getBlock({ blockNumber, includeTransactions: true }));
    if (block.number !== blockNumber) throw new ChainUnreachable("the chain answered a different request");
    const found = block.transactions.find(
      (each) => each.nonce === nonce && each.from.toLowerCase() === address.toLowerCase(),
    );
    return found === undefined ? null : { hash: found.hash, blockNumber };
  }

  /** Returns a transaction's receipt in the current chain; null if the chain does not contain it. */
  async receipt(hash: Hash): Promise<Receipt | null> {
    try {
      const found = await withTimeout(CALL_TIMEOUT_MS, this.client.getTransactionReceipt({ hash }));
      // A proxy that mixes up answers must not turn one payment's outcome into another's.
      if (found.transactionHash !== hash)
        throw new ChainUnreachable("the chain answered a different request");
      const { blockNumber, gasUsed, logs, status } = found;
      return { succeeded: status === "success", blockNumber, gasUsed, logs, hash };
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return null;
      throw this.#unreachable(error);
    }
  }

  /** Returns a transaction's data and block; null if the chain has no such transaction. */
  async transaction(hash: Hash): Promise<FoundTransaction | null> {
    try {
      const found = await withTimeout(CALL_TIMEOUT_MS, this.client.getTransaction({ hash }));
      if (found.hash !== hash) throw new ChainUnreachable("the chain answered a different request");
      const { blockNumber, from, input: data, to } = found;
      return { data, from, to, blockNumber };
    } catch (error) {
      if (error instanceof TransactionNotFoundError) return null;
      throw this.#unreachable(error);
    }
  }

  /**
   * Broadcasts a signed transaction. Returns the chain's objection as text, or null. Objections (already known, already
   * mined, not enough for gas) are no failures: what counts is the chain's nonce later.
   */
  async send(raw: Hex): Promise<string | null> {
    const error = await this.#sendError(raw);
    return error === null ? null : this.#reasonOf(error);
  }

  /**
   * Broadcasts signed transactions in order, a few at a time. If a request gets no answer twice, its transactions and
   * all later ones are left to the keeper.
   */
  async sendAll(raws: readonly Hex[]): Promise<void> {
    const size = Math.min(BROADCAST_PER_REQUEST_MAX, this.#batching.most);
    for (let at = 0; at < raws.length; at += size) {
      let isAnswered = false;
      for (let round = 0; round < BROADCASTS_MAX && !isAnswered; round += 1) {
        const errors = await Promise.all(raws.slice(at, at + size).map((raw) => this.#sendError(raw)));
        isAnswered = errors.every((error) => error === null || isAnswer(error));
      }
      if (!isAnswered) return;
    }
  }

  /** Simulates a call on the newest block, without an effect. Throws if the chain does not answer. */
  async simulate({ data, from, gas, to }: TriedCall): Promise<Simulated> {
    try {
      const found = await withTimeout(CALL_TIMEOUT_MS, this.client.call({ account: from, to, data, gas }));
      return { kind: "passes", data: found.data ?? "0x" };
    } catch (error) {
      if (!isAnswer(error)) throw this.#unreachable(error);
      const text = revertTextOf(error);
      if (text === null) return { kind: "unclear", error: this.#unreachable(error) };
      return { kind: "reverts", text: this.#plain(text) };
    }
  }

  /** Returns the gas that a call needs on the newest block; null if the chain has no figure, as for a revert. */
  async estimateGas({ data, from, to }: TriedCall): Promise<bigint | null> {
    try {
      return await withTimeout(
        CALL_TIMEOUT_MS,
        this.client.estimateGas({ account: from, to, data, prepare: false }),
      );
    } catch (error) {
      if (isAnswer(error)) return null;
      throw this.#unreachable(error);
    }
  }

  /**
   * Returns the gas limit for signing a call: its own figure, or the chain's with a margin if that is more, since not
   * all chains meter alike. A local chain meters as expected.
   */
  async gasFor({ data, gas, to }: { to: Address; data: Hex; gas: bigint }, from: Address): Promise<bigint> {
    if (this.#config.fixedFees !== null) return gas;
    const estimate = withMargin((await this.estimateGas({ from, to, data })) ?? 0n);
    return estimate > gas ? estimate : gas;
  }

  /** Adds the timeout to a call made with `client` directly, and hides the URL from its errors. */
  async answer<T>(call: Promise<T>): Promise<T> {
    try {
      return await withTimeout(CALL_TIMEOUT_MS, call);
    } catch (error) {
      throw this.#unreachable(error);
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

  async #sendError(raw: Hex): Promise<unknown> {
    try {
      await withTimeout(CALL_TIMEOUT_MS, this.client.sendRawTransaction({ serializedTransaction: raw }));
      return null;
    } catch (error) {
      return error;
    }
  }

  #unreachable(error: unknown): ChainUnreachable {
    return error instanceof ChainUnreachable
      ? error
      : new ChainUnreachable(`the chain did not answer: ${this.#reasonOf(error)}`);
  }

  /** Returns an error's kind, its first line, and the node's message. viem puts the URL on further lines. */
  #reasonOf(error: unknown): string {
    if (!(error instanceof BaseError)) return error instanceof Error ? error.name : "unknown";
    const { details, name, shortMessage } = error;
    const [headline = ""] = shortMessage.split("\n");
    const text = details === "" || headline.includes(details) ? headline : `${headline} (${details})`;
    return this.#plain(`${name}: ${text}`);
  }

  /** Removes possible keys from a provider's text. */
  #plain(text: string): string {
    return this.#urls.reduce((plain, url) => plainText(plain, url), text);
  }
}

/** Whether the node answered with an error, as opposed to a lost answer. */
const isAnswer = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((each) => each instanceof RpcRequestError) !== null;
