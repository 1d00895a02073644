import { isRecent } from "../lib/stamps.ts";
import { parseTransaction } from "viem";
import type { ChainConfig, Fees } from "./config.ts";
import { type GasPrice, raiseOf } from "./fees.ts";
import { type ChainOutbox, isTransaction, type RecordedTransaction, type Sendable } from "./outbox.ts";
import type { ChainWatchers } from "./repairs.ts";
import type { ChainRpc } from "./rpc.ts";

export interface FeeRaisingDependencies extends ChainWatchers {
  readonly config: ChainConfig;
  readonly rpc: ChainRpc;
  readonly outbox: ChainOutbox;
  readonly clock: () => Date;
  /** Age of the newest signing before a fee raise is considered. */
  readonly raiseAfterMs: number;
}

/**
 * Raises the fees of transactions that wait because the chain now asks more than when they were signed. A raised
 * transaction is the same call under the same nonce, so that exactly one of its signings is ever mined. Never exceeds
 * the configured maximum; beyond it, transactions wait until the chain asks less.
 */
export class FeeRaising {
  readonly #dependencies: FeeRaisingDependencies;

  constructor(dependencies: FeeRaisingDependencies) {
    this.#dependencies = dependencies;
  }

  /** Returns the transactions to send now, in order; new signings are already recorded. */
  async raise(missing: readonly Sendable[]): Promise<readonly Sendable[]> {
    const { clock, config, raiseAfterMs, rpc } = this.#dependencies;
    const nowMs = clock().getTime();
    const isLate = (recorded: Sendable): recorded is RecordedTransaction => {
      if (!isTransaction(recorded) || recorded.replacedBy !== null) return false;
      const signedAt = recorded.signings.at(-1)?.at;
      return signedAt !== undefined && !isRecent(signedAt, nowMs, raiseAfterMs);
    };
    // Only a local chain has fixed fees; there the base fee is lowered instead.
    if (config.fixedFees !== null || !missing.some(isLate)) return missing;
    const price = await rpc.gasPrice();
    const current: Sendable[] = [];
    const raised: RecordedTransaction[] = [];
    const bounded: RecordedTransaction[] = [];
    for (const transaction of missing) {
      if (!isLate(transaction)) {
        current.push(transaction);
        continue;
      }
      const outcome = await this.#raise(transaction, price);
      if (outcome === "bounded") bounded.push(transaction);
      if (typeof outcome !== "string") raised.push(outcome);
      current.push(typeof outcome === "string" ? transaction : outcome);
    }
    this.#report(raised, bounded, price);
    return current;
  }

  async #raise(
    transaction: RecordedTransaction,
    price: GasPrice,
  ): Promise<RecordedTransaction | "as it is" | "bounded"> {
    const { onWarning, outbox, config } = this.#dependencies;
    const { nonce, purpose } = transaction;
    try {
      const raise = raiseOf(feesIn(transaction), price, config.maxFeePerGas);
      if (raise.kind === "too dear") return "bounded";
      if (raise.kind === "enough") return "as it is";
      return (await outbox.raise(transaction, raise.fees)) ?? "as it is";
    } catch (error) {
      // A failure of one must not keep the others from being sent.
      const details = { nonce, purpose, error: error instanceof Error ? error.message : "" };
      onWarning("the fee of a transaction could not be raised", details);
      return "as it is";
    }
  }

  #report(
    raised: readonly RecordedTransaction[],
    bounded: readonly RecordedTransaction[],
    { baseFeePerGas }: GasPrice,
  ): void {
    const { onRepair, onWarning } = this.#dependencies;
    const about = (some: readonly RecordedTransaction[]) => ({
      nonce: some[0]?.nonce,
      hash: some[0]?.hash,
      count: some.length,
      baseFeePerGas: String(baseFeePerGas),
    });
    if (raised.length > 0) {
      onRepair("fee_raised", raised.length);
      onWarning("the fee of waiting transactions was raised", about(raised));
    }
    if (bounded.length > 0) {
      onRepair("fee_bounded", bounded.length);
      const details = { ...about(bounded), setting: "EVM_MAX_FEE_PER_GAS_GWEI" };
      onWarning("transactions wait, since the chain requires a higher fee than may be offered", details);
    }
  }
}

function feesIn({ raw }: RecordedTransaction): Fees {
  const { maxFeePerGas, maxPriorityFeePerGas = 0n } = parseTransaction(raw);
  if (maxFeePerGas === undefined) throw new Error("a recorded transaction offers no fee");
  return { maxFeePerGas, maxPriorityFeePerGas };
}
