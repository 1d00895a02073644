import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { builtFile, PACKAGE_ROOT } from "../../src/lib/package-root.ts";

export type Role = "server" | "worker";

/** Line that a role prints once it can be used. */
const READY: Readonly<Record<Role, RegExp>> = {
  server: /^ +REST +http/m,
  worker: /^The worker is running\.$/m,
};

/** Also where the machine has much else to do. */
const READY_MS = 240_000;
/** Before a role is started again, as an orchestrator would. */
const AGAIN_AFTER_MS = 300;
/** Last words that are kept. */
const WORDS_MAX = 2_000;

/** None outlives this process, however it ends, unless it is killed itself. */
const living = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

export interface RoleOptions {
  readonly name: string;
  readonly role: Role;
  readonly env: NodeJS.ProcessEnv;
  readonly logDir: string;
}

/** A server or worker as a process of its own, started again whenever it ends. */
export class RoleProcess {
  readonly name: string;
  readonly role: Role;
  readonly #options: RoleOptions;
  readonly #log: WriteStream;
  readonly #events = new EventEmitter();
  readonly #endings: string[] = [];
  #child: ChildProcess | null = null;
  #isReady = false;
  #killed = false;
  #stopping = false;
  #restarts = 0;
  #running: Promise<void> = Promise.resolve();
  /** Resolves when the process may be started again. */
  #released: Promise<unknown> = Promise.resolve();

  constructor(options: RoleOptions) {
    this.name = options.name;
    this.role = options.role;
    this.#options = options;
    this.#log = createWriteStream(join(options.logDir, `${options.name}.log`), { flags: "a" });
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error(`${this.name} is not running`);
    return pid;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Unexpected exits of a running role, which no disaster should cause. */
  get endings(): readonly string[] {
    return this.#endings;
  }

  /** Times that it could not be started and was started again, such as for an engine that was down. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Sets its clock so many milliseconds wrong, until it is set right (0) or ends: a new process has the right one. */
  setClock(clockOffsetMs: number): void {
    if (this.#child?.connected === true) this.#child.send({ clockOffsetMs }, () => undefined);
  }

  /** Stops it as a stalled machine does (SIGSTOP), and lets it go on after so long, unless it is killed meanwhile. */
  async suspend(ms: number): Promise<void> {
    const child = this.#child;
    if (child?.kill("SIGSTOP") !== true) return;
    await new Promise((resolve) => setTimeout(resolve, ms));
    child.kill("SIGCONT");
  }

  /** kill -9; it is started again by itself. */
  kill(): void {
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) return;
    this.#killed = true;
    this.#isReady = false;
    this.#child.kill("SIGKILL");
  }

  async ready(): Promise<void> {
    if (this.#isReady) return;
    try {
      await once(this.#events, "ready", { signal: AbortSignal.timeout(READY_MS) });
    } catch (error) {
      const where = join(this.#options.logDir, `${this.name}.log`);
      const message = `${this.name} is not ready after ${String(READY_MS / 1_000)} s; look into ${where}`;
      throw new Error(message, { cause: error });
    }
  }

  /** Ends it gently and starts it again. Resolves when it is ready. */
  async renew(): Promise<void> {
    const release = await this.hold();
    release();
    await this.ready();
  }

  /** Ends it gently. It is started again once the returned function is called. */
  async hold(): Promise<() => void> {
    if (this.#child === null) throw new Error(`${this.name} is not running`);
    this.#released = once(this.#events, "released");
    this.#killed = true;
    this.#isReady = false;
    const child = this.#child;
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    return () => void this.#events.emit("released");
  }

  /** Ends it for good: gently only where it is to leave nothing behind that others must repair. */
  async stop(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    this.#stopping = true;
    this.#child?.kill(signal);
    await this.#running;
    this.#log.end();
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      this.#killed = false;
      const ended = await this.#once();
      const wasReady = this.#isReady;
      this.#isReady = false;
      if (this.#stopping) return;
      if (!this.#killed && wasReady) this.#endings.push(`${this.name} ended by itself: ${ended}`);
      if (!this.#killed && !wasReady) this.#restarts += 1;
      await this.#released;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
    }
  }

  /** One life of it. Answers how it ended, with its last words. */
  async #once(): Promise<string> {
    const { env, role } = this.#options;
    const args = ["--import", pathToFileURL(builtFile("lab/chaos/wrong-clock.ts")).href];
    const child = spawn(process.execPath, [...args, builtFile("server/main.ts"), role], {
      cwd: PACKAGE_ROOT,
      env,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.#child = child;
    living.add(child);
    let said = "";
    let words = "";
    const take = (text: string): void => {
      this.#log.write(text);
      words = `${words}${text}`.slice(-WORDS_MAX);
    };
    child.stderr?.setEncoding("utf8").on("data", take);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      take(text);
      if (this.#isReady || this.#killed) return;
      said += text;
      if (!READY[role].test(said)) return;
      this.#isReady = true;
      this.#events.emit("ready");
    });
    await once(child, "close");
    living.delete(child);
    return `${child.signalCode ?? `code ${String(child.exitCode)}`}: ${words.trim()}`;
  }
}
