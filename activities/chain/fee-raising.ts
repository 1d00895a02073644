import { parseTransaction } from "viem";
import type { ChainPlace, Fees } from "./config.ts";
import { raiseOf } from "./fees.ts";
import type { ChainOutbox, RecordedTransaction } from "./outbox.ts";
import type { ChainRpc } from "./rpc.ts";

export interface FeeRaisingDependencies {
  readonly place: ChainPlace;
  readonly rpc: ChainRpc;
  readonly outbox: ChainOutbox;
  readonly clock: () => Date;
  /** What was signed last is given so long to be mined before it is looked at whether more must be offered. */
  readonly raiseAfterMs: number;
  /** Told of what an operator should know. */
  readonly onTrouble: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

/**
 * Offers more for transactions that wait since the chain asks more than when they were signed: the same call under the
 * same nonce, so that of all its signings exactly one is ever mined. Never above the place's bound; beyond that they wait
 * until the chain asks less.
 */
export class FeeRaising {
  readonly #dependencies: FeeRaisingDependencies;

  constructor(dependencies: FeeRaisingDependencies) {
    this.#dependencies = dependencies;
  }

  /** The transactions as they are to be sent now, in their order; what is new of them is remembered already. */
  async raise(missing: readonly RecordedTransaction[]): Promise<readonly RecordedTransaction[]> {
    const { clock, onTrouble, outbox, place, raiseAfterMs, rpc } = this.#dependencies;
    const late = clock().getTime() - raiseAfterMs;
    const isLate = ({ signings }: RecordedTransaction): boolean =>
      (signings.at(-1)?.at.getTime() ?? Infinity) <= late;
    // Fixed fees are a local chain's, where the base fee is lowered instead.
    if (place.fixedFees !== null || !missing.some(isLate)) return missing;
    const price = await rpc.gasPrice();
    const now: RecordedTransaction[] = [];
    const raised: number[] = [];
    const tooDear: number[] = [];
    for (const transaction of missing) {
      const said = raiseOf(feesIn(transaction), price, place.maxFeePerGas);
      if (said.kind === "too dear" && isLate(transaction)) tooDear.push(transaction.nonce);
      if (said.kind !== "raise" || !isLate(transaction) || transaction.lost !== null) {
        now.push(transaction);
        continue;
      }
      const signed = await outbox.raise(transaction, said.fees);
      if (signed !== null) raised.push(signed.nonce);
      now.push(signed ?? transaction);
    }
    const { baseFeePerGas } = price;
    if (raised.length > 0)
      onTrouble("the fee of transactions that wait is raised", about(raised, baseFeePerGas));
    const details = { ...about(tooDear, baseFeePerGas), setting: "EVM_MAX_FEE_PER_GAS_GWEI" };
    if (tooDear.length > 0)
      onTrouble("transactions wait, since the chain asks a higher fee than may be offered", details);
    return now;
  }
}

const about = (nonces: readonly number[], baseFeePerGas: bigint) => ({
  nonce: nonces[0],
  count: nonces.length,
  baseFeePerGas: String(baseFeePerGas),
});

function feesIn({ raw }: RecordedTransaction): Fees {
  const { maxFeePerGas, maxPriorityFeePerGas = 0n } = parseTransaction(raw);
  if (maxFeePerGas === undefined) throw new Error("a recorded transaction offers no fee");
  return { maxFeePerGas, maxPriorityFeePerGas };
}
