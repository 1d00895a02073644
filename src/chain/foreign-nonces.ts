import { LRUCache } from "lru-cache";
import type { Db } from "mongodb";
import type { Address } from "viem";
import type { Clock } from "../payments/ports.ts";
import { NonceCursor } from "./nonce-cursor.ts";
import { type ChainOutbox, isTransaction, type RecordedTransaction } from "./outbox.ts";
import type { Signing } from "./recorded.ts";
import type { ChainWatchers } from "./repairs.ts";
import { type ChainRpc, ChainUnreachable, type MinedTransaction } from "./rpc.ts";

/**
 * The outcome of a transaction. `open`: its nonce is not used in a final block. `unexplained`: the nonce is used, and
 * the chain does not say by what. `overtaken`: the transaction was signed again since it was read, so nothing is
 * proven.
 */
type Trace = "replaced" | "own" | "open" | "unexplained" | "overtaken";

/** Maximum transactions checked in one step. */
const SEARCHED_MAX = 200;
/** Number of unexplained nonces at which no further ones are checked. */
const UNEXPLAINED_MAX = 200;
/** Maximum nonces whose report is remembered. */
const REPORTED_MAX = 10_000;

export interface ForeignNoncesDependencies extends ChainWatchers {
  readonly db: Db;
  readonly rpc: ChainRpc;
  readonly outbox: ChainOutbox;
  readonly from: Address;
  readonly chainCaip2: string;
  readonly clock: Clock;
  /** Called with each transaction found replaced, possibly twice for the same one. */
  readonly onReplaced: (transaction: RecordedTransaction) => Promise<void>;
}

/**
 * Finds recorded transactions that can never be mined because another one of the same key has their nonce: an
 * operator's cancellation, or that of a second deployment. Only the other transaction itself, in a block with all its
 * confirmations, proves a replacement. A missing receipt proves nothing: nodes forget receipts.
 */
export class ForeignNonces {
  readonly #dependencies: ForeignNoncesDependencies;
  readonly #cursor: NonceCursor;
  /**
   * Purposes by nonce, for used nonces whose transaction the chain has not named yet, or not in a final block. Queried
   * again at each check.
   */
  readonly #unexplained = new Map<number, string>();
  /** The lowest nonce under which this process has recorded anything since its last complete check. */
  #lowest = Infinity;
  readonly #reported = new LRUCache<number, true>({ max: REPORTED_MAX });
  /** The block in which each not yet final nonce was used; once final, a node may have dropped that state. */
  readonly #usedIn = new LRUCache<number, bigint>({ max: REPORTED_MAX });

  constructor(dependencies: ForeignNoncesDependencies) {
    this.#dependencies = dependencies;
    const { chainCaip2, db, from } = dependencies;
    this.#cursor = new NonceCursor(db, `${chainCaip2}/${from}/nonces`);
  }

  /** Whether none of a transaction's signings can be mined, by proof: true for good. False if unknown. */
  async isReplaced(transaction: RecordedTransaction): Promise<boolean> {
    if (transaction.replacedBy !== null) return true;
    if (await this.#isInChain(transaction)) return false;
    return (await this.#traceIfExplained(transaction)) === "replaced";
  }

  /** Returns the signing in a final block; null if none, as far as the chain can tell. */
  async minedAs(transaction: RecordedTransaction): Promise<MinedTransaction | null> {
    const mined = await this.#minedUnder(transaction.nonce);
    return mined !== null && mined !== "not final" && isOneOf(transaction.signings, mined) ? mined : null;
  }

  /** Checks what became final since the last call. Throws if the chain or the database does not answer. */
  async look(): Promise<void> {
    const { from, outbox, rpc } = this.#dependencies;
    const final = (await rpc.confirmed(from)).nonce;
    outbox.nonces.isFinalBelow(final);
    // Read again: more may have been signed under these nonces since.
    const unexplained = [...(await outbox.find([...this.#unexplained.values()])).values()];
    await this.#lookFor(unexplained.filter(isTransaction), final);
    // A transaction signed under a long used nonce is behind the cursor.
    this.#lowest = Math.min(this.#lowest, outbox.nonces.lowestSinceRead());
    const begin = Math.min(await this.#cursor.begin(final), this.#lowest);
    if (this.#lowest >= final) this.#lowest = Infinity;
    if (begin >= final || this.#unexplained.size >= UNEXPLAINED_MAX) return;
    const recorded = await outbox.from(begin, SEARCHED_MAX);
    await this.#lookFor(recorded.filter(isTransaction), final);
    const last = recorded.at(-1);
    const isWhole = recorded.length < SEARCHED_MAX || last === undefined || last.nonce >= final;
    await this.#cursor.advance(isWhole ? final : last.nonce + 1, [...this.#unexplained.keys()]);
    this.#lowest = Infinity;
  }

  async #lookFor(recorded: readonly RecordedTransaction[], final: number): Promise<void> {
    const used = recorded.filter(({ nonce }) => nonce < final);
    // After lost blocks, nonces are checked again once they are final.
    for (const { nonce } of recorded) if (nonce >= final) this.#unexplained.delete(nonce);
    const areMined = await Promise.all(used.map((transaction) => this.#isInChain(transaction)));
    for (const [at, transaction] of used.entries()) {
      this.#unexplained.delete(transaction.nonce);
      if (areMined[at] === true) continue;
      const found = transaction.replacedBy === null ? await this.#traceIfExplained(transaction) : "replaced";
      if (found === "replaced") await this.#dependencies.onReplaced(transaction);
      if (found !== "replaced" && found !== "own")
        this.#unexplained.set(transaction.nonce, transaction.purpose);
    }
  }

  async #isInChain({ signings }: RecordedTransaction): Promise<boolean> {
    const receipts = await Promise.all(signings.map(({ hash }) => this.#dependencies.rpc.receipt(hash)));
    return receipts.some((receipt) => receipt !== null);
  }

  /** Traces one transaction; a missing answer must not stop the others. */
  async #traceIfExplained(transaction: RecordedTransaction): Promise<Trace> {
    const { nonce, purpose } = transaction;
    const found = await this.#trace(transaction).catch((error: unknown): Trace => {
      if (error instanceof ChainUnreachable) return "unexplained";
      throw error;
    });
    if (found === "unexplained" && !this.#reported.has(nonce)) {
      this.#reported.set(nonce, true);
      const { onRepair, onWarning } = this.#dependencies;
      onRepair("nonce_unexplained", 1);
      onWarning("a nonce of the service's key is used, and the chain does not say by what", {
        nonce,
        purpose,
      });
    }
    return found;
  }

  async #trace(transaction: RecordedTransaction): Promise<Trace> {
    const { clock, onRepair, onWarning, outbox } = this.#dependencies;
    const { nonce, purpose, signings } = transaction;
    const mined = await this.#minedUnder(nonce);
    if (mined === "not final") return "open";
    if (mined === null) return "unexplained";
    if (isOneOf(signings, mined)) return "own";
    const blockNumber = Number(mined.blockNumber);
    const marked = await outbox.markReplaced(transaction, { hash: mined.hash, blockNumber, at: clock() });
    if (marked === "not proven") return "overtaken";
    const details = { nonce, purpose, by: mined.hash, blockNumber };
    if (marked === "known before") return "replaced";
    onRepair("foreign_nonce", 1);
    onWarning("a nonce of the service's key was used by another transaction", details);
    return "replaced";
  }

  /** Returns the transaction that has a nonce in a final block; null if the chain does not say which. */
  async #minedUnder(nonce: number): Promise<MinedTransaction | "not final" | null> {
    const { from, rpc } = this.#dependencies;
    const confirmed = await rpc.confirmed(from);
    if (confirmed.nonce <= nonce) return "not final";
    const newest = confirmed.readAt ?? (await rpc.head()).blockNumber;
    const isUsedAt = async (block: bigint): Promise<boolean> => (await rpc.nonceAt(from, block)) > nonce;
    const known = this.#usedIn.get(nonce);
    if (known === undefined && !(await isUsedAt(newest))) return "not final";
    const block = known ?? (await firstBlock(isUsedAt, newest));
    this.#usedIn.set(nonce, block);
    if (block > (confirmed.through ?? newest)) return "not final";
    // Read again at the next check: the block may have been replaced.
    this.#usedIn.delete(nonce);
    return rpc.minedIn(block, from, nonce);
  }
}

/** Returns the first block from which a condition holds, given one for which it holds; it must stay true afterwards. */
async function firstBlock(holds: (block: bigint) => Promise<boolean>, known: bigint): Promise<bigint> {
  let high = known;
  let low = known - 1n;
  // Goes back in growing steps: the block is usually near, and nodes drop old state.
  for (let step = 1n; low >= 0n && (await holds(low)); step *= 2n) {
    high = low;
    low -= step;
  }
  if (low < 0n) low = -1n;
  while (high - low > 1n) {
    const middle = (high + low) / 2n;
    if (await holds(middle)) high = middle;
    else low = middle;
  }
  return high;
}

const isOneOf = (signings: readonly Signing[], { hash }: MinedTransaction): boolean =>
  signings.some((signing) => signing.hash === hash);
