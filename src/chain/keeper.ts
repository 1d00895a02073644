import { isRecent } from "../lib/stamps.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "viem";
import type { FeeRaising } from "./fee-raising.ts";
import { type ChainOutbox, isTransaction, type RecordedTransaction } from "./outbox.ts";
import type { Signing } from "./recorded.ts";
import type { ChainWatchers } from "./repairs.ts";
import type { ChainRpc } from "./rpc.ts";
import type { ForeignNonces } from "./foreign-nonces.ts";

/** Transactions that are sent again in one round at the most; they go lowest nonce first. */
const RESENT_PER_ROUND_MAX = 200;
/** Missing nonces that are filled in one round at the most. */
const FILLED_PER_ROUND_MAX = 50;
/** Consecutive rounds in which the same nonce is missing after a resend, before something is done about it. */
const FUTILE_ROUNDS_MAX = 3;
/** While nothing is missing the interval grows, to a bound: an idle service costs little. */
const PAUSE_GROWS_BY = 1.25;
const PAUSES_MAX = 4;

/** Time limit of a round's resending: a chain that falls silent makes each wait. */
const RESENDING_MAX_MS = 10_000;

export interface KeeperDependencies extends ChainWatchers {
  readonly rpc: ChainRpc;
  readonly outbox: ChainOutbox;
  readonly foreignNonces: Pick<ForeignNonces, "look">;
  readonly raising: Pick<FeeRaising, "raise">;
  readonly from: Address;
  /** The interval of rounds. */
  readonly everyMs: number;
  /** A younger transaction is still being sent by the process that recorded it. */
  readonly resendAfterMs: number;
  readonly clock: () => Date;
  /** Called in every round; on a test chain: what it needs besides. */
  readonly onEveryRound: () => Promise<void>;
  /** Done before anything is sent again; on a test chain, which may be a fresh one: gas. */
  readonly beforeResending: () => Promise<void>;
  /** Done in a round in which nothing waits for the chain for long: what may wait for payments. */
  readonly whileKeepingUp: (stopping: AbortSignal) => Promise<void>;
  /** Done when sending again has moved nothing some times in a row. */
  readonly unwedge: () => Promise<void>;
}

/**
 * Sees to it that what is recorded is in the chain. Looks at the account's nonce there: every recorded transaction from
 * it on is missing, whether it was never sent, dropped, taken back by a reorganization, or lost with the blocks of a chain
 * that was killed; and is sent again under the same nonce, as it was signed last or for a higher fee, so never to a second
 * effect. Every process has one; several at once do no harm.
 */
export class Keeper {
  readonly #dependencies: KeeperDependencies;
  readonly #stopping = new AbortController();
  /** The nonce that was missing when something was sent again last, and how often in a row it was the same one. */
  #missing = -1;
  #futile = 0;
  #oldestMissing: Date | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(dependencies: KeeperDependencies) {
    this.#dependencies = dependencies;
  }

  /** Time at which the oldest missing transaction was recorded, as of the last round; null if none was missing. */
  get oldestMissing(): Date | null {
    return this.#oldestMissing;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Runs one round and returns the number of resent transactions. Throws if chain or database do not answer. */
  async round(): Promise<number> {
    const {
      beforeResending,
      clock,
      onEveryRound,
      from,
      onWarning,
      outbox,
      raising,
      resendAfterMs,
      rpc,
      unwedge,
      whileKeepingUp,
    } = this.#dependencies;
    await rpc.check();
    // First: what a local chain needs may itself have been replaced.
    await this.#findReplaced();
    await onEveryRound();
    const mined = await rpc.nonceAt(from, "latest");
    const missing = await outbox.from(mined, RESENT_PER_ROUND_MAX);
    const [first] = missing;
    this.#oldestMissing = first?.createdAt ?? null;
    if (first === undefined || isRecent(first.createdAt, clock().getTime(), resendAfterMs)) {
      await whileKeepingUp(this.#stopping.signal);
      return 0;
    }
    if (first.nonce > mined) onWarning("a nonce of the service's key is missing", { nonce: mined });
    this.#futile = this.#missing === mined ? this.#futile + 1 : 0;
    this.#missing = mined;
    await beforeResending();
    if (this.#futile >= FUTILE_ROUNDS_MAX) {
      this.#futile = 0;
      await unwedge();
      if (first.nonce > mined) await this.#fill(mined, first.nonce);
    }
    return this.#sendAgain(await raising.raise(missing));
  }

  async #findReplaced(): Promise<void> {
    const { onWarning, foreignNonces } = this.#dependencies;
    // A failed look for used nonces must not stop the resending.
    await foreignNonces
      .look()
      .catch((error: unknown) => onWarning("used nonces could not be checked", errorOf(error)));
  }

  /** Foreign transactions had these nonces when they were passed over, and the chain has lost them since. */
  async #fill(from: number, upTo: number): Promise<void> {
    const { onRepair, onWarning, outbox, rpc } = this.#dependencies;
    for (let nonce = from; nonce < Math.min(upTo, from + FILLED_PER_ROUND_MAX); nonce += 1) {
      const noop = await outbox.recordNoop(nonce);
      if (noop === null || !isTransaction(noop)) return;
      onRepair("nonce_filled", 1);
      await rpc.send(noop.raw);
      onWarning("a missing nonce is filled with a transaction that does nothing", { nonce });
    }
  }

  async #sendAgain(missing: readonly RecordedTransaction[]): Promise<number> {
    const { onRepair, onWarning, rpc } = this.#dependencies;
    const objections: (string | null)[] = [];
    const until = performance.now() + RESENDING_MAX_MS;
    for (const transaction of missing) {
      if (this.#stopping.signal.aborted || performance.now() > until) break;
      const { raw } = await this.#sentFor(transaction);
      objections.push(await rpc.send(raw));
    }
    const sent = objections.length;
    onRepair("sent_again", sent);
    const details = {
      hash: missing[0]?.hash,
      nonce: missing[0]?.nonce,
      sent,
      objections: [...new Set(objections.filter((each) => each !== null))],
    };
    onWarning("transactions that the chain did not have were sent again", details);
    return sent;
  }

  /** Returns the signing to send. A replaced transaction is not resent, but later ones wait for its nonce. */
  async #sentFor(transaction: RecordedTransaction): Promise<Pick<Signing, "raw">> {
    if (transaction.replacedBy === null) return transaction;
    if (transaction.noop !== null) return transaction.noop;
    const { onRepair, onWarning, outbox } = this.#dependencies;
    const noop = await outbox.noopFor(transaction);
    onRepair("nonce_filled", 1);
    const { nonce, purpose } = transaction;
    onWarning(
      "the nonce of a replaced transaction is missing again, and filled with a transaction that does nothing",
      {
        nonce,
        purpose,
      },
    );
    return noop;
  }

  async #run(): Promise<void> {
    const { everyMs, onWarning } = this.#dependencies;
    const { signal } = this.#stopping;
    let pauseMs = everyMs;
    while (!signal.aborted) {
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const sent = await this.round();
        pauseMs = sent > 0 ? everyMs : Math.min(everyMs * PAUSES_MAX, pauseMs * PAUSE_GROWS_BY);
      } catch (error) {
        pauseMs = everyMs;
        onWarning("the chain could not be checked", errorOf(error));
      }
    }
  }
}

const errorOf = (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) });
