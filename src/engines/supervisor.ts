import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, reasonOf } from "./errors.ts";
import { type GuardedProcess, type Launch, startGuarded } from "./guardian.ts";
import { endProcess, isAlive, startMarker } from "./processes.ts";

const READY_TIMEOUT_MS = 60_000;
/** Minimum run time of an engine for its next exit to count as a new failure. */
const STABLE_AFTER_MS = 10_000;
export const FAST_FAILURES_MAX = 5;
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5_000;
const LEFTOVER_GRACE_MS = 1_000;

export interface EngineSpec extends Launch {
  /** Prepares the engine's files before each start; returns additional arguments for that start. */
  prepare?(): Promise<readonly string[]>;
  /** Resolves once the engine is usable; gives up when the signal aborts. Called after each start. */
  ready(signal: AbortSignal): Promise<void>;
  /** Maximum time to end by itself before the engine is killed. */
  readonly stopGraceMs: number;
  /** Remedy if the engine cannot be started or restarted, in whole sentences. */
  readonly remedy: string;
}

export interface SupervisorHooks {
  /** Called when the engine ended or could not be restarted. If `fatal`, it stays down; see the detail. */
  onUnexpectedExit(detail: string, fatal: boolean): void;
  onRestarted(pid: number): void;
}

async function waitUntilReady(spec: EngineSpec, running: GuardedProcess): Promise<void> {
  const timeout = AbortSignal.timeout(READY_TIMEOUT_MS);
  const over = new AbortController();
  const seconds = String(READY_TIMEOUT_MS / 1_000);
  const died = running.ended.then((how) => {
    const message = `${spec.name} (${spec.binary}) ended while it started: ${how}`;
    throw new EngineError("START_FAILED", message);
  });
  try {
    await Promise.race([spec.ready(AbortSignal.any([timeout, over.signal])), died]);
  } catch (error) {
    if (!timeout.aborted || error instanceof EngineError) throw error;
    throw new EngineError(
      "START_FAILED",
      `${spec.name} was not usable within ${seconds} s: ${reasonOf(error)}`,
      {
        cause: error,
      },
    );
  } finally {
    over.abort();
  }
}

/**
 * Keeps one engine running: restarts it with growing pauses whenever it ends by itself, on the same ports and data.
 * Gives up after 5 fast failures in a row, and says so.
 */
export class Supervisor {
  readonly #spec: EngineSpec;
  readonly #hooks: SupervisorHooks;
  readonly #stopping = new AbortController();
  #running: GuardedProcess | null = null;
  #failures = 0;
  #watching: Promise<void> = Promise.resolve();

  private constructor(spec: EngineSpec, hooks: SupervisorHooks) {
    this.#spec = spec;
    this.#hooks = hooks;
  }

  /**
   * Starts the engine and waits until it is usable, or until the signal aborts. Throws EngineError START_FAILED, which
   * says what to do; nothing is left running then.
   */
  static async start(spec: EngineSpec, hooks: SupervisorHooks, signal?: AbortSignal): Promise<Supervisor> {
    const supervisor = new Supervisor(spec, hooks);
    const giveUp = (): void => void supervisor.stop();
    signal?.addEventListener("abort", giveUp, { once: true });
    if (signal?.aborted === true) giveUp();
    try {
      const running = await supervisor.#launch();
      supervisor.#watching = supervisor.#watch(running);
      return supervisor;
    } catch (error) {
      throw new EngineError("START_FAILED", `${reasonOf(error)} ${spec.remedy}`, { cause: error });
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  /** Null while the engine is down. */
  get pid(): number | null {
    return this.#running?.pid ?? null;
  }

  /** Ends the engine for good, by SIGKILL if it takes too long. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const running = this.#running;
    if (running !== null) await this.#end(running, this.#spec.stopGraceMs);
    await this.#watching;
  }

  async #launch(): Promise<GuardedProcess> {
    const more = (await this.#spec.prepare?.()) ?? [];
    const running = await startGuarded({ ...this.#spec, args: [...this.#spec.args, ...more] });
    this.#running = running;
    try {
      if (this.#stopping.signal.aborted) throw new EngineError("START_FAILED", "stopped meanwhile");
      await waitUntilReady(this.#spec, running);
      return running;
    } catch (error) {
      await this.#end(running, LEFTOVER_GRACE_MS);
      this.#running = null;
      throw error;
    }
  }

  async #end(running: GuardedProcess, graceMs: number): Promise<void> {
    running.signal("SIGTERM");
    const kill = setTimeout(() => {
      running.signal("SIGKILL");
    }, graceMs);
    await running.ended;
    clearTimeout(kill);
  }

  async #watch(first: GuardedProcess): Promise<void> {
    let running = first;
    for (;;) {
      const marker = await startMarker(running.pid);
      const startedAt = Date.now();
      const how = await running.ended;
      this.#running = null;
      if (this.#stopping.signal.aborted) return;
      if (Date.now() - startedAt >= STABLE_AFTER_MS) this.#failures = 0;
      // The engine can still run only if the guardian itself was killed.
      if (marker !== null && (await isAlive(running.pid)) && (await startMarker(running.pid)) === marker) {
        await endProcess(running.pid, LEFTOVER_GRACE_MS);
      }
      const next = await this.#restart(`${this.#spec.name} ${how}`);
      if (next === null) return;
      running = next;
    }
  }

  /** Restarts the engine until it works, is stopped, or has failed too often. */
  async #restart(firstFailure: string): Promise<GuardedProcess | null> {
    let failure = firstFailure;
    while (!this.#stopping.signal.aborted) {
      this.#failures += 1;
      if (this.#failures >= FAST_FAILURES_MAX) {
        const times = String(FAST_FAILURES_MAX);
        const givenUp = `${failure} (given up after ${times} failures in a row). ${this.#spec.remedy}`;
        this.#hooks.onUnexpectedExit(givenUp, true);
        return null;
      }
      this.#hooks.onUnexpectedExit(failure, false);
      const pause = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (this.#failures - 1));
      try {
        await sleep(pause, undefined, { signal: this.#stopping.signal });
        const running = await this.#launch();
        this.#hooks.onRestarted(running.pid);
        return running;
      } catch (error) {
        failure = reasonOf(error);
      }
    }
    return null;
  }
}
