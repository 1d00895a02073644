import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "viem";
import type { RecordedTransaction } from "./outbox.ts";
import type { ChainRpc, Receipt } from "./rpc.ts";

interface Waiting {
  readonly transaction: RecordedTransaction;
  readonly until: number;
  readonly resolve: (receipt: Receipt | null) => void;
}

const NEWEST = { nonce: Infinity, through: null } as const;

export interface FinalityDependencies {
  readonly rpc: ChainRpc;
  readonly from: Address;
  readonly pollMs: number;
  readonly confirmations: number;
}

/**
 * Tells when transactions are confirmed. An account's nonce in a block says which of its nonces are used in the chain
 * up to there, so one query serves all waiting callers, followed by receipts of the signings under each nonce.
 */
export class Finality {
  readonly #dependencies: FinalityDependencies;
  #waiting: Waiting[] = [];
  #polling = false;
  #confirmed = 0;

  constructor(dependencies: FinalityDependencies) {
    this.#dependencies = dependencies;
  }

  /** Nonce below which this process has seen all transactions confirmed. */
  get confirmedNonce(): number {
    return this.#confirmed;
  }

  /** Returns the transactions' current receipts, in order; null for one that lacks confirmations. */
  async now(transactions: readonly RecordedTransaction[]): Promise<readonly (Receipt | null)[]> {
    const { confirmations, from, rpc } = this.#dependencies;
    if (transactions.length === 0) return [];
    // A transaction in the newest block has one confirmation, as its receipt alone shows. For several, the chain is
    // queried first which of them it contains.
    const isOneEnough = confirmations === 1 && transactions.length === 1;
    const confirmed = isOneEnough ? NEWEST : await rpc.confirmed(from);
    const receiptOf = async ({ nonce, signings }: RecordedTransaction): Promise<Receipt | null> => {
      if (nonce >= confirmed.nonce) return null;
      const receipts = await Promise.all(signings.map(({ hash }) => rpc.receipt(hash)));
      const receipt = receipts.find((each) => each !== null) ?? null;
      // A reorganization between the two queries may have moved the transaction to a newer block.
      const isDeep = confirmed.through === null || (receipt?.blockNumber ?? 0n) <= confirmed.through;
      return isDeep ? receipt : null;
    };
    const receipts = await Promise.all(transactions.map(receiptOf));
    for (const [at, { nonce }] of transactions.entries()) {
      // Earlier nonces are in the chain as well, or were used by another transaction.
      if (receipts[at] !== null) this.#confirmed = Math.max(this.#confirmed, nonce + 1);
    }
    return receipts;
  }

  /**
   * Resolves to a transaction's receipt once it is confirmed; null if that takes longer than `withinMs`, or the chain
   * does not answer meanwhile.
   */
  wait(transaction: RecordedTransaction, withinMs: number): Promise<Receipt | null> {
    return new Promise((resolve) => {
      this.#waiting.push({ transaction, until: performance.now() + withinMs, resolve });
      if (!this.#polling) void this.#poll();
    });
  }

  async #poll(): Promise<void> {
    this.#polling = true;
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      const receipts = await this.now(waiting.map(({ transaction }) => transaction)).catch(() => null);
      this.#answer(waiting, receipts);
      if (this.#waiting.length > 0) await sleep(this.#dependencies.pollMs);
    }
    this.#polling = false;
  }

  #answer(waiting: readonly Waiting[], receipts: readonly (Receipt | null)[] | null): void {
    const now = performance.now();
    const pending = waiting.filter((one, index) => {
      const receipt = receipts?.[index] ?? null;
      if (receipt === null && now < one.until) return true;
      one.resolve(receipt);
      return false;
    });
    // Arrivals during the call are queued behind.
    this.#waiting = [...pending, ...this.#waiting.slice(waiting.length)];
  }
}
