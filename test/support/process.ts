import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listProcesses, type ProcessLine, signalProcess, waitForEnd } from "../../src/engines/processes.ts";
import { readRuntimeFile, type RuntimeFile } from "../../src/engines/runtime-file.ts";
import { builtFile, PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { pauseBefore } from "./poll-pauses.ts";
import { expectNoSecrets } from "./secrets.ts";
import { sharedEngines } from "./shared-engines.ts";

/** Real processes of the service, started, killed and started again by tests. */

const START_MS = 150_000;
const END_MS = 120_000;

/** Settings of the run that tests itself, which must not reach the processes under test. */
const NOT_INHERITED =
  /^(TEST_.*|npm_.*|MONGODB_(URI|PORT)|TEMPORAL_(ADDRESS|NAMESPACE|TASK_QUEUE|PORT|UI|UI_PORT)|EVM_RPC_URL|CHAIN_PORT|MASTER_KEY.*|PORT|HOST|BASE_URL|MCP_URL|DEFAULT_PLAN|DATA_DIR|APPROVAL_WINDOW_SECONDS|KEY_DELIVERY_.*|WEBHOOK_.*|AUDIT_.*|LOG_LEVEL|TRUSTED_PROXIES|WEBAUTHN_.*|METRICS_PORT|.*_RETENTION_DAYS)$/;

/** This run's environment without its own settings: what finds the engines' binaries stays. */
export const cleanEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name)));

/** Asks until there is an answer that is not null; an error counts as none yet. Fails after the bound. */
export async function until<T>(
  what: string,
  withinMs: number,
  ask: () => Promise<T | null> | T | null,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  let last: unknown = null;
  for (let look = 0; ; look += 1) {
    try {
      const answer = await ask();
      if (answer !== null) return answer;
      last = null;
    } catch (error) {
      last = error;
    }
    if (Date.now() >= deadline) {
      const why = last instanceof Error ? `: ${last.message}` : "";
      throw new Error(`${what}: not within ${withinMs} ms${why}`, { cause: last });
    }
    await pauseBefore(look);
  }
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const living = new Set<Child>();
process.once("exit", () => {
  for (const child of living) signalProcess(child.pid, "SIGKILL");
});

/** One process with what it has printed. It does not outlive the tests. */
export class Child {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  #stdout = "";
  #stderr = "";
  #exit: Exit | null = null;

  private constructor(spawned: ChildProcess) {
    if (spawned.pid === undefined) throw new Error("the process could not be started");
    this.pid = spawned.pid;
    spawned.stdout?.setEncoding("utf8").on("data", (text: string) => (this.#stdout += text));
    spawned.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    living.add(this);
    this.exited = new Promise((resolve) => {
      // Not "exit": by now everything that it printed has arrived.
      spawned.once("close", (code, signal) => {
        living.delete(this);
        this.#exit = { code, signal };
        resolve(this.#exit);
      });
    });
  }

  static spawn(command: string, args: readonly string[], env: NodeJS.ProcessEnv, input?: string): Child {
    const stdin = input === undefined ? "ignore" : "pipe";
    const spawned = spawn(command, args, { cwd: PACKAGE_ROOT, env, stdio: [stdin, "pipe", "pipe"] });
    spawned.stdin?.end(input);
    return new Child(spawned);
  }

  /** What was built of a TypeScript file of this repository. */
  static node(file: string, args: readonly string[], env: NodeJS.ProcessEnv, input?: string): Child {
    return Child.spawn(process.execPath, [builtFile(file), ...args], env, input);
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get running(): boolean {
    return this.#exit === null;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#exit === null) signalProcess(this.pid, signal);
  }

  async end(signal: NodeJS.Signals): Promise<Exit> {
    this.signal(signal);
    return this.exit(END_MS);
  }

  /** How it ended; fails, and kills it, when it has not after the bound. */
  async exit(withinMs: number): Promise<Exit> {
    try {
      return await until(`process ${this.pid} ends`, withinMs, () => this.#exit);
    } catch (error) {
      this.signal("SIGKILL");
      throw error;
    }
  }

  /** Waits for something that it prints or does; fails at once when it ends instead. */
  async until<T>(what: string, withinMs: number, ask: () => Promise<T | null> | T | null): Promise<T> {
    const { value } = await until(what, withinMs, async () => {
      const asked = await ask();
      return asked === null && this.#exit === null ? null : { value: asked };
    });
    if (value === null) throw new Error(`${what}: it ended instead\n${this.#stdout}${this.#stderr}`);
    return value;
  }

  /** Waits for a line on standard output. */
  printed(pattern: RegExp, withinMs: number): Promise<RegExpExecArray> {
    return this.until(`output of ${String(pattern)}`, withinMs, () => pattern.exec(this.#stdout));
  }
}

export type EngineName = "mongod" | "temporal" | "anvil";

const ENGINES = ["temporal", "anvil", "mongod"] as const satisfies readonly EngineName[];

function pidIn({ chain, mongodb, temporal }: RuntimeFile, name: EngineName): number | null {
  return { mongod: mongodb, temporal, anvil: chain }[name].pid;
}

export interface ServiceProcessOptions {
  /** What is run instead of `server/main.ts start`, from this repository's root. */
  readonly entry?: string;
  readonly env?: NodeJS.ProcessEnv;
  /**
   * Whose engines it works on. `own`: embedded ones, which can be killed; they cost seconds of processor at each start.
   * `shared`: the run's, with a database and a task queue of its own.
   */
  readonly engines?: "own" | "shared";
}

/** The all-in-one as a process of its own, on a folder of its own, over any number of starts. */
export class ServiceProcess {
  readonly dataDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly #entry: string;
  #child: Child | null = null;
  #runtime: RuntimeFile | null = null;

  private constructor(
    dataDir: string,
    { engines = "own", entry = "server/main.ts", env = {} }: ServiceProcessOptions,
  ) {
    this.dataDir = dataDir;
    this.#entry = entry;
    this.env = {
      ...cleanEnvironment(),
      DATA_DIR: dataDir,
      PORT: "0",
      MONGODB_PORT: "0",
      TEMPORAL_PORT: "0",
      TEMPORAL_UI: "false",
      CHAIN_PORT: "0",
      // The tests are their own proxy: each request says where it comes from.
      TRUSTED_PROXIES: "loopback",
      ...(engines === "own" ? {} : sharedEngines()),
      ...env,
    };
  }

  /** A folder for it; nothing runs yet. */
  static async create(options: ServiceProcessOptions = {}): Promise<ServiceProcess> {
    return new ServiceProcess(
      await realpath(await mkdtemp(join(tmpdir(), "spending-control-process-"))),
      options,
    );
  }

  /** Starts it, with further settings, and waits until it is ready. */
  async start(env: NodeJS.ProcessEnv = {}): Promise<RuntimeFile> {
    return this.ready(Child.node(this.#entry, ["start"], { ...this.env, ...env }));
  }

  /** Takes a process, npm perhaps, that is starting the service on this folder, and waits until it is ready. */
  async ready(child: Child): Promise<RuntimeFile> {
    this.#child = child;
    const before = this.#runtime?.pid ?? null;
    const runtime = await child.until("the service is ready", START_MS, async () => {
      const written = await readRuntimeFile(this.dataDir);
      return written === null || written.pid === before ? null : written;
    });
    this.#runtime = runtime;
    return runtime;
  }

  get child(): Child {
    if (this.#child === null) throw new Error("the service was not started");
    return this.#child;
  }

  /** What runs where, as of the last start or the last engine that came back. */
  get runtime(): RuntimeFile {
    if (this.#runtime === null) throw new Error("the service was not started");
    return this.#runtime;
  }

  #engine(name: EngineName): number {
    const pid = pidIn(this.runtime, name);
    if (pid === null) throw new Error(`${name} is not this service's own`);
    return pid;
  }

  /** kill -9 of the service alone. Its engines end by their guardians. */
  async killMain(): Promise<void> {
    signalProcess(this.runtime.pid, "SIGKILL");
    await this.child.exit(END_MS);
  }

  /** kill -9 of one engine alone. */
  killEngine(name: EngineName): void {
    signalProcess(this.#engine(name), "SIGKILL");
  }

  /** Waits until the supervisor has brought a killed engine back, as runtime.json tells. */
  async engineBack(name: EngineName, withinMs: number): Promise<void> {
    const dead = this.#engine(name);
    this.#runtime = await this.child.until(`${name} is back`, withinMs, async () => {
      const written = await readRuntimeFile(this.dataDir);
      const pid = written === null ? null : pidIn(written, name);
      return pid === null || pid === dead ? null : written;
    });
  }

  /** kill -9 of service and engines in one breath, as when the machine loses its power. */
  async killEverything(): Promise<void> {
    const pids = [this.runtime.pid, ...ENGINES.map((name) => this.#engine(name))];
    for (const pid of pids) signalProcess(pid, "SIGKILL");
    await this.child.exit(END_MS);
    for (const pid of pids) if (!(await waitForEnd(pid, END_MS))) throw new Error(`${pid} does not end`);
  }

  /** Processes that work on this folder: engines, their guardians. */
  async processes(): Promise<readonly ProcessLine[]> {
    const all = await listProcesses();
    return all.filter(({ commandLine }) => commandLine.includes(` ${this.dataDir}/`));
  }

  async untilNothingRuns(withinMs: number): Promise<void> {
    await until(`nothing runs on ${this.dataDir}`, withinMs, async () =>
      (await this.processes()).length === 0 ? true : null,
    );
  }

  /** Ends whatever still runs and removes the folder. */
  async dispose(): Promise<void> {
    // Below npm the service is another process, which would go on alone.
    if (this.#child?.running === true && this.#runtime !== null) {
      signalProcess(this.#runtime.pid, "SIGKILL");
    }
    await this.#child?.end("SIGKILL");
    for (const { pid } of await this.processes()) signalProcess(pid, "SIGKILL");
    await this.untilNothingRuns(END_MS);
    await expectNoSecrets(this.dataDir);
    if (process.env["KEEP_DIRS"] === undefined)
      await rm(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}
