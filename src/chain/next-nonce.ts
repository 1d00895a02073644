import type { Collection } from "mongodb";
import type { Address } from "viem";
import type { ChainTransactionDocument } from "./recorded.ts";
import type { ChainRpc } from "./rpc.ts";

interface NextNonceDependencies {
  readonly collection: Collection<ChainTransactionDocument>;
  /** Account and chain (CAIP-2) of the nonces. */
  readonly chain: string;
  readonly from: Address;
  readonly rpc: ChainRpc;
}

/** Source of the next nonce, according to the records; the unique index refuses wrong ones. */
export class NextNonce {
  readonly #dependencies: NextNonceDependencies;
  /** Next nonce as known to this process; null if it has to be read. */
  #next: number | null = null;
  #usedUpAtFirst: Promise<number> | null = null;
  /** Nonce below which all are in final blocks, used by this key's transactions or foreign ones. */
  #finalBelow = 0;
  #lowestSinceRead = Infinity;

  constructor(dependencies: NextNonceDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the nonce after the highest recorded one, but at least the chain's at this process's first query (records
   * may come from an older backup), and at least the first one not used in a final block (a foreign sender may use the
   * key).
   */
  async next(): Promise<number> {
    this.#next ??= await this.#find();
    return Math.max(this.#next, this.#finalBelow);
  }

  /** Notes recorded documents, in order. */
  given(documents: readonly ChainTransactionDocument[]): void {
    const nonces = documents.flatMap(({ nonce }) => (nonce === null ? [] : [nonce]));
    if (nonces.length === 0) return;
    this.#next = Math.max(...nonces) + 1;
    this.#lowestSinceRead = Math.min(this.#lowestSinceRead, ...nonces);
  }

  /** Forgets the next nonce: another process may have recorded something. */
  forget(): void {
    this.#next = null;
  }

  /** Returns the lowest nonce under which this process has recorded anything since the last call; Infinity if none. */
  lowestSinceRead(): number {
    const lowest = this.#lowestSinceRead;
    this.#lowestSinceRead = Infinity;
    return lowest;
  }

  /** Notes that all nonces below are in final blocks, whichever sender used them, so none of them is given out. */
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
    // Another chain's nonce would leave a permanent gap.
    await rpc.check();
    return rpc.nonceAt(from, "latest");
  }
}
