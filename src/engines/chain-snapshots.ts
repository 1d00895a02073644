import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { z } from "zod";
import { callRpc } from "./anvil-rpc.ts";
import { saveState } from "./chain-state.ts";
import { reasonOf } from "./errors.ts";
import type { OnProgress } from "./progress.ts";

export const SNAPSHOT_INTERVAL_MS = 2_000;
/** Ratio of pause to duration: snapshots take at most a tenth of the time, however large the chain. */
const PAUSE_PER_SNAPSHOT = 10;
const RESUME_TRIES_MAX = 5;
const RETRY_PAUSE_MS = 100;
/**
 * Maximum attempts at the last snapshot. Blocks missing from it are lost unless anvil writes them at its end. Limited,
 * so that a hanging chain does not delay the stop for long.
 */
const LAST_TRIES_MAX = 3;
const LAST_TRY_AFTER_MAX_MS = 2_000;

const unzip = promisify(gunzip);
const blockSchema = z.object({ hash: z.string() });
const dumpSchema = z.string().regex(/^0x/);

export interface SnapshotOptions {
  readonly rpcUrl: string;
  readonly folder: string;
  readonly intervalMs: number;
  readonly onProgress: OnProgress;
}

/**
 * Saves the local chain's state every few seconds in which a block was mined, so that a killed anvil restarts with that
 * state. anvil keeps everything in memory; the state that it writes itself is neither atomic nor, under load,
 * consistent.
 */
export class ChainSnapshots {
  readonly #options: SnapshotOptions;
  readonly #stopping = new AbortController();
  /** Hash of the newest block in the last snapshot. */
  #saved: string;
  #said = "";
  /** Whether this class has stopped the mining and failed to resume it. */
  #holdsMining = false;
  readonly #running: Promise<void>;

  private constructor(options: SnapshotOptions, saved: string) {
    this.#options = options;
    this.#saved = saved;
    this.#running = this.#run();
  }

  /** Starts with a freshly loaded chain: there is nothing to save until its next block. */
  static async start(options: SnapshotOptions): Promise<ChainSnapshots> {
    return new ChainSnapshots(options, await newestBlock(options.rpcUrl));
  }

  /** Takes a last snapshot if anything has changed, and stops. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const until = performance.now() + LAST_TRY_AFTER_MAX_MS;
    for (let tries = 1; !(await this.#attempt()); tries += 1) {
      if (tries >= LAST_TRIES_MAX || performance.now() > until) return;
      await sleep(RETRY_PAUSE_MS);
    }
  }

  async #run(): Promise<void> {
    let pauseMs = this.#options.intervalMs;
    while (await this.#pause(pauseMs)) {
      const startedAt = performance.now();
      const isDone = await this.#attempt();
      const tookMs = isDone ? performance.now() - startedAt : 0;
      pauseMs = Math.max(this.#options.intervalMs, PAUSE_PER_SNAPSHOT * tookMs);
    }
  }

  async #attempt(): Promise<boolean> {
    try {
      await this.#saveIfChanged();
      this.#said = "";
      return true;
    } catch (error) {
      this.#say(reasonOf(error));
      return false;
    }
  }

  /** Resolves to false once the snapshots are stopped. */
  async #pause(ms: number): Promise<boolean> {
    try {
      await sleep(ms, undefined, { signal: this.#stopping.signal });
      return true;
    } catch {
      return false;
    }
  }

  /** Reports each reason once rather than every two seconds. */
  #say(reason: string): void {
    if (reason === this.#said) return;
    this.#said = reason;
    this.#options.onProgress(`anvil: no snapshot was taken: ${reason}`);
  }

  async #saveIfChanged(): Promise<void> {
    const { folder, rpcUrl } = this.#options;
    if (!this.#holdsMining && (await newestBlock(rpcUrl)) === this.#saved) return;
    const { hex, newest } = await this.#atOneMoment();
    await saveState(folder, await unzip(Buffer.from(hex.slice(2), "hex")));
    this.#saved = newest;
  }

  /**
   * Dumps a consistent state. anvil reads its state in several steps and mines meanwhile, which would save a
   * transaction's effect without the transaction. So mining is stopped; the extra block mined then waits for one in
   * progress.
   */
  async #atOneMoment(): Promise<Dump> {
    const { rpcUrl } = this.#options;
    const isMining = (await callRpc(rpcUrl, "anvil_getAutomine")) === true;
    // A debugger or an operator has stopped the mining, and wants no block.
    if (!isMining && !this.#holdsMining) return dump(rpcUrl);
    try {
      this.#holdsMining = true;
      await callRpc(rpcUrl, "evm_setAutomine", [false]);
      await callRpc(rpcUrl, "evm_mine");
      return await dump(rpcUrl);
    } finally {
      await this.#resumeMining();
    }
  }

  async #resumeMining(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await callRpc(this.#options.rpcUrl, "evm_setAutomine", [true]);
        this.#holdsMining = false;
        return;
      } catch (error) {
        // An anvil that has ended restarts with mining on.
        if (tries >= RESUME_TRIES_MAX) throw error;
        await sleep(RETRY_PAUSE_MS);
      }
    }
  }
}

interface Dump {
  readonly newest: string;
  /** Hexadecimal of gzipped JSON, with the prefix 0x. */
  readonly hex: string;
}

async function newestBlock(rpcUrl: string): Promise<string> {
  return blockSchema.parse(await callRpc(rpcUrl, "eth_getBlockByNumber", ["latest", false])).hash;
}

async function dump(rpcUrl: string): Promise<Dump> {
  const newest = await newestBlock(rpcUrl);
  const hex = dumpSchema.parse(await callRpc(rpcUrl, "anvil_dumpState"));
  if ((await newestBlock(rpcUrl)) !== newest) throw new Error("a block was mined meanwhile");
  return { newest, hex };
}
