import { EventEmitter, once } from "node:events";
import { signalProcess } from "../../src/engines/processes.ts";
import { type RunningEngines, startEngines } from "../../src/engines/start.ts";

export const ENGINES = ["mongod", "temporal", "anvil"] as const;
export type EngineName = (typeof ENGINES)[number];

/** The supervisor's pauses, the engine's own start, and the machine's other work. */
const BACK_MS = 240_000;

/** Settings of a service of this machine's own, which must not lead this run to it. */
const NOT_INHERITED =
  /^(TEST_.*|npm_.*|MONGODB_(URI|PORT)|TEMPORAL_(ADDRESS|NAMESPACE|TASK_QUEUE|PORT|UI|UI_PORT)|EVM_.*|CHAIN_PORT|MASTER_KEY|PORT|HOST|BASE_URL|MCP_URL|DATA_DIR|APPROVAL_WINDOW_SECONDS|KEY_DELIVERY_.*|LOG_LEVEL|TRUSTED_PROXIES|WEBHOOK_.*)$/;

/** This process's environment without its own settings: what finds the engines' binaries stays. */
export const cleanEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name)));

/** The three engines under their supervisors, and a way to kill each. */
export class Engines {
  readonly running: RunningEngines;
  readonly #events: EventEmitter;
  #fatal: string | null = null;

  private constructor(running: RunningEngines, events: EventEmitter) {
    this.running = running;
    this.#events = events;
  }

  static async start(dataDir: string, say: (line: string) => void): Promise<Engines> {
    const events = new EventEmitter();
    const running = await startEngines({
      dataDir,
      env: cleanEnvironment(),
      ports: { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 },
      onProgress: say,
      onUnexpectedExit: (engine, detail, fatal) => {
        if (fatal) events.emit("fatal", `${engine}: ${detail}`);
      },
      onRestarted: (engine) => events.emit(`back ${engine}`),
    });
    const engines = new Engines(running, events);
    events.on("fatal", (detail: string) => {
      engines.#fatal = detail;
    });
    return engines;
  }

  /** Why an engine stays down for good; null: none does. */
  get fatal(): string | null {
    return this.#fatal;
  }

  #pid(name: EngineName): number | null {
    const { chain, mongodb, temporal } = this.running;
    return { mongod: mongodb, temporal, anvil: chain }[name].pid;
  }

  /** kill -9. Resolves when its supervisor has it running again. */
  async killAndAwaitRestart(name: EngineName): Promise<void> {
    const pid = this.#pid(name);
    if (pid === null) throw new Error(`${name} is down already`);
    const back = once(this.#events, `back ${name}`, { signal: AbortSignal.timeout(BACK_MS) });
    signalProcess(pid, "SIGKILL");
    await back.catch((error: unknown) => {
      const why = this.#fatal ?? `not within ${String(BACK_MS / 1_000)} s`;
      throw new Error(`${name} does not come back: ${why}`, { cause: error });
    });
  }

  stop(): Promise<void> {
    return this.running.stop();
  }
}
