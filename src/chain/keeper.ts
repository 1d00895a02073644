import { isRecent } from "../lib/stamps.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "viem";
import type { FeeRaising } from "./fee-raising.ts";
import { type ChainOutbox, isTransaction, type Sendable } from "./outbox.ts";
import type { Signing } from "./recorded.ts";
import type { ChainWatchers } from "./repairs.ts";
import type { ChainRpc } from "./rpc.ts";
import type { ForeignNonces } from "./foreign-nonces.ts";

/** Maximum transactions resent in one round, lowest nonce first. */
const RESENT_PER_ROUND_MAX = 200;
const FILLED_PER_ROUND_MAX = 50;
/** Consecutive rounds in which the same nonce is missing after a resend before `unwedge` is called. */
const FUTILE_ROUNDS_MAX = 3;
/** Growth of the interval while nothing is missing, up to a limit: an idle service costs little. */
const PAUSE_GROWS_BY = 1.25;
const PAUSES_MAX = 4;

/** Time limit for a round's resending: if the chain falls silent, every send waits. */
const RESENDING_MAX_MS = 10_000;

export interface KeeperDependencies extends ChainWatchers {
  readonly rpc: ChainRpc;
  readonly outbox: ChainOutbox;
  readonly foreignNonces: Pick<ForeignNonces, "look">;
  readonly raising: Pick<FeeRaising, "raise">;
  readonly from: Address;
  /** Interval of the rounds. */
  readonly everyMs: number;
  /** Minimum age of a transaction before it is resent: the process that recorded a younger one is still sending it. */
  readonly resendAfterMs: number;
  readonly clock: () => Date;
  /** Called in every round; prepares what a test chain needs. */
  readonly onEveryRound: () => Promise<void>;
  /** Called before anything is resent; supplies gas on a test chain, which may be a fresh one. */
  readonly beforeResending: () => Promise<void>;
  /** Called in rounds without long waits for the chain: work that may give way to payments. */
  readonly whileKeepingUp: (stopping: AbortSignal) => Promise<void>;
  /** Called after several futile resends in a row. */
  readonly unwedge: () => Promise<void>;
}

/**
 * Ensures that recorded transactions reach the chain. By the account's nonce on the chain, every recorded transaction
 * from that nonce on is missing, whether it was never sent, dropped, undone by a reorganization, or lost with a killed
 * chain's blocks. It is resent under the same nonce, as last signed or for a higher fee, so it never takes effect
 * twice. Every process has a keeper; several at once do no harm.
 */
export class Keeper {
  readonly #dependencies: KeeperDependencies;
  readonly #stopping = new AbortController();
  /** The missing nonce at the last resend, and the number of consecutive resends with it. */
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
    // Runs first: a local chain's own setup may itself have been replaced.
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
    // A failed check of used nonces must not stop the resending.
    await foreignNonces
      .look()
      .catch((error: unknown) => onWarning("used nonces could not be checked", errorOf(error)));
  }

  /** Fills nonces that were skipped because foreign transactions had them, and that the chain has lost since. */
  async #fill(from: number, upTo: number): Promise<void> {
    const { onRepair, onWarning, outbox, rpc } = this.#dependencies;
    for (let nonce = from; nonce < Math.min(upTo, from + FILLED_PER_ROUND_MAX); nonce += 1) {
      const noop = await outbox.recordNoop(nonce);
      if (noop === null || !isTransaction(noop)) return;
      onRepair("nonce_filled", 1);
      await rpc.send(noop.raw);
      onWarning("a missing nonce is filled with a no-op", { nonce });
    }
  }

  async #sendAgain(missing: readonly Sendable[]): Promise<number> {
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
      hash: missing.find(isTransaction)?.hash,
      nonce: missing[0]?.nonce,
      sent,
      objections: [...new Set(objections.filter((each) => each !== null))],
    };
    onWarning("transactions missing from the chain were resent", details);
    return sent;
  }

  /** Returns the signing to send. A replaced transaction is not resent, but later ones wait for its nonce. */
  async #sentFor(transaction: Sendable): Promise<Pick<Signing, "raw">> {
    if (!isTransaction(transaction)) return transaction;
    if (transaction.replacedBy === null) return transaction;
    if (transaction.noop !== null) return transaction.noop;
    const { onRepair, onWarning, outbox } = this.#dependencies;
    const noop = await outbox.noopFor(transaction);
    onRepair("nonce_filled", 1);
    const { nonce, purpose } = transaction;
    onWarning("the nonce of a replaced transaction is missing again and is filled with a no-op", {
      nonce,
      purpose,
    });
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
