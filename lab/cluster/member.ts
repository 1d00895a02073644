import { EventEmitter, once } from "node:events";
import { signalProcess } from "../../src/engines/processes.ts";
import { type EngineSpec, Supervisor } from "../../src/engines/supervisor.ts";

const BACK_MS = 240_000;

/** One engine's process of a cluster, started again whenever it ends. */
export class Member {
  readonly #spec: EngineSpec;
  readonly #events = new EventEmitter();
  #supervisor: Supervisor | null = null;
  #fatal: string | null = null;

  constructor(spec: EngineSpec) {
    this.#spec = spec;
  }

  /** Reason for which it stays down for good; null: it does not. */
  get fatal(): string | null {
    return this.#fatal;
  }

  get pid(): number {
    const pid = this.#supervisor?.pid ?? null;
    if (pid === null) throw new Error(`${this.#spec.name} is down`);
    return pid;
  }

  /** Resolves when it can be used. */
  async start(): Promise<this> {
    this.#supervisor = await Supervisor.start(this.#spec, {
      onUnexpectedExit: (detail, fatal) => {
        if (fatal) this.#fatal = `${this.#spec.name}: ${detail}`;
      },
      onRestarted: () => this.#events.emit("back"),
    });
    return this;
  }

  /** kill -9. Resolves when its supervisor has it running again. */
  async killAndAwaitRestart(): Promise<void> {
    const back = once(this.#events, "back", { signal: AbortSignal.timeout(BACK_MS) });
    signalProcess(this.pid, "SIGKILL");
    await back;
  }

  /** Ends it; it stays away until it is started. */
  async stop(): Promise<void> {
    await this.#supervisor?.stop();
    this.#supervisor = null;
  }
}
