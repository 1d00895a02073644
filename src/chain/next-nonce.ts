import type { Collection } from "mongodb";
import type { Address } from "viem";
import type { ChainTransactionDocument } from "./recorded.ts";
import type { ChainRpc } from "./rpc.ts";

interface NextNonceDependencies {
  readonly collection: Collection<ChainTransactionDocument>;
  /** Whose nonces: the service's key on this chain, by its CAIP-2 id. */
  readonly chain: string;
  readonly from: Address;
  readonly rpc: ChainRpc;
}

/** The nonce that is given out next, by what is recorded; wrong ones are refused by the unique index. */
export class NextNonce {
  readonly #dependencies: NextNonceDependencies;
  /** As this process knows it; null: to be looked up. */
  #next: number | null = null;
  #usedUpAtFirst: Promise<number> | null = null;
  /** Every nonce below is in final blocks, ours or not. */
  #finalBelow = 0;
  #lowestSinceRead = Infinity;

  constructor(dependencies: NextNonceDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * One more than the highest that is recorded; but never one that the chain had used when this process first queried it, as it
   * has where the records are of an earlier time (a restored backup), nor one that is known to be used in a final block, as it is
   * where a foreign sender uses the same key.
   */
  async next(): Promise<number> {
    this.#next ??= await this.#find();
    return Math.max(this.#next, this.#finalBelow);
  }

  /** These are recorded, in their order. */
  given(documents: readonly ChainTransactionDocument[]): void {
    const nonces = documents.flatMap(({ nonce }) => (nonce === null ? [] : [nonce]));
    if (nonces.length === 0) return;
    this.#next = Math.max(...nonces) + 1;
    this.#lowestSinceRead = Math.min(this.#lowestSinceRead, ...nonces);
  }

  /** Another process may have recorded something. */
  forget(): void {
    this.#next = null;
  }

  /** The lowest nonce that this process has recorded anything under since the last call; Infinity: none. */
  lowestSinceRead(): number {
    const lowest = this.#lowestSinceRead;
    this.#lowestSinceRead = Infinity;
    return lowest;
  }

  /** Below this nonce all are in final blocks, whichever sender used them: none of those is given out. */
  isFinalBelow(nonce: number): void {
    this.#finalBelow = nonce;
  }

  async #find(): Promise<number> {
    const { chain, collection, from } = this.#dependencies;
    const own = { chain, from, nonce: { $gte: 0 } };
    const [last] = await collection.find(own).sort({ nonce: -1 }).limit(1).toArray();
    return Math.max((last?.nonce ?? -1) + 1, await this.#usedUp());
  }

  #usedUp(): Promise<number> {
    this.#usedUpAtFirst ??= this.#readNonce().catch((error: unknown) => {
      this.#usedUpAtFirst = null;
      throw error;
    });
    return this.#usedUpAtFirst;
  }

  async #readNonce(): Promise<number> {
    const { from, rpc } = this.#dependencies;
    // Another chain's number would leave a gap for good.
    await rpc.check();
    return rpc.nonceAt(from, "latest");
  }
}
