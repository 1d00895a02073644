import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "viem";
import type { ChainOutbox } from "./outbox.ts";
import type { ChainRpc } from "./rpc.ts";

/** Transactions that are sent again in one round at the most; they go lowest nonce first. */
const RESENT_PER_ROUND_MAX = 200;
/** So often in a row the same nonce is missing after it was sent again before something is done about it. */
const FUTILE_ROUNDS_MAX = 3;
/** While nothing is missing it is looked at ever less often, to a bound: a service that nobody uses costs little. */
const PAUSE_GROWS_BY = 1.25;
const PAUSES_MAX = 4;

/** How long one round sends: a chain that falls silent meanwhile makes each of them wait. */
const RESENDING_MAX_MS = 10_000;

export interface KeeperDependencies {
  readonly rpc: ChainRpc;
  readonly outbox: ChainOutbox;
  readonly from: Address;
  /** How often the chain is looked at. */
  readonly everyMs: number;
  /** What is younger is on its way by whoever recorded it. */
  readonly resendAfterMs: number;
  readonly clock: () => Date;
  /** Done at every look; on a test chain: what it needs besides. */
  readonly everyLook: () => Promise<void>;
  /** Done before anything is sent again; on a test chain, which may be a fresh one: gas. */
  readonly beforeResending: () => Promise<void>;
  /** Done when sending again has moved nothing some times in a row. */
  readonly unwedge: () => Promise<void>;
  /** Told of what an operator should know. */
  readonly onTrouble: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

/**
 * Sees to it that what is recorded is in the chain. Looks at the account's nonce there: every recorded transaction from
 * it on is missing, whether it was never sent, dropped, taken back by a reorganization, or lost with the blocks of a chain
 * that was killed; and is sent again as it was signed, so with the same hash and never to a second effect. Every process
 * has one; several at once do no harm.
 */
export class Keeper {
  readonly #dependencies: KeeperDependencies;
  readonly #stopping = new AbortController();
  /** The nonce that was missing when something was sent again last, and how often in a row it was the same one. */
  #missing = -1;
  #futile = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(dependencies: KeeperDependencies) {
    this.#dependencies = dependencies;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** One look; answers how many were sent again. Throws where the chain or the database does not answer. */
  async round(): Promise<number> {
    const { beforeResending, clock, everyLook, from, onTrouble, outbox, resendAfterMs, rpc, unwedge } =
      this.#dependencies;
    await rpc.check();
    await everyLook();
    const mined = await rpc.nonceAt(from, "latest");
    const missing = await outbox.from(mined, RESENT_PER_ROUND_MAX);
    const [first] = missing;
    if (first === undefined) return 0;
    const late = clock().getTime() - resendAfterMs;
    if (first.createdAt.getTime() > late) return 0;
    if (first.nonce > mined) onTrouble("a nonce of the service's key is missing", { nonce: mined });
    this.#futile = this.#missing === mined ? this.#futile + 1 : 0;
    this.#missing = mined;
    await beforeResending();
    if (this.#futile >= FUTILE_ROUNDS_MAX) {
      this.#futile = 0;
      await unwedge();
    }
    const objections: (string | null)[] = [];
    const until = performance.now() + RESENDING_MAX_MS;
    for (const { raw } of missing) {
      if (this.#stopping.signal.aborted || performance.now() > until) break;
      objections.push(await rpc.send(raw));
    }
    const { hash, nonce } = first;
    const sent = objections.length;
    const details = {
      hash,
      nonce,
      sent,
      objections: [...new Set(objections.filter((each) => each !== null))],
    };
    onTrouble("transactions that the chain did not have were sent again", details);
    return sent;
  }

  async #run(): Promise<void> {
    const { everyMs, onTrouble } = this.#dependencies;
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
        onTrouble("the chain could not be looked after", {
          error: error instanceof Error ? error.message : String(error),
        });
      }
    }
  }
}
