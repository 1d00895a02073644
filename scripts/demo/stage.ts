import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { MASTER_KEY_FILE_NAME, masterKeySetting } from "../../src/secrets/load-master-key.ts";
import { builtFile, PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { readLiveRuntimeFile, type RuntimeFile } from "../../src/engines/runtime-file.ts";

/** A step did not end as the story says. */
export class StepDiffers extends Error {
  override readonly name = "StepDiffers";
}

const SERVER_START_MS = 30_000;

/** A service that the story has for itself. */
export interface OwnService {
  readonly baseUrl: string;
  readonly env: NodeJS.ProcessEnv;
}

interface AdminInput {
  readonly flags?: readonly string[];
  /** Of the service it is for; by default the running one. */
  readonly env?: NodeJS.ProcessEnv;
  /** For its standard input. */
  readonly input?: string;
}

/** The running service that the story is played against, and what is started beside it. */
export class Stage {
  readonly runtime: RuntimeFile;
  readonly #env: NodeJS.ProcessEnv;
  readonly #dataDir: string;
  readonly #children: ChildProcess[] = [];

  private constructor(env: NodeJS.ProcessEnv, dataDir: string, runtime: RuntimeFile) {
    this.#env = env;
    this.#dataDir = dataDir;
    this.runtime = runtime;
  }

  static async open(env: NodeJS.ProcessEnv): Promise<Stage> {
    const dataDir = resolve(env["DATA_DIR"] ?? ".data");
    const runtime = await readLiveRuntimeFile(dataDir);
    if (runtime === null) {
      process.stderr.write(
        `No service runs on ${dataDir}. Start one with \`npm start\`, then run this again.\n`,
      );
      process.exit(1);
    }
    return new Stage(env, dataDir, runtime);
  }

  /** The chain: the service's own, or the one that the environment names to both. */
  get chainUrl(): string {
    return this.runtime.chain.rpcUrl ?? this.#env["EVM_RPC_URL"] ?? "";
  }

  /** Runs an admin command as a person would, and reads the JSON it prints. */
  async admin(
    name: string,
    options: Readonly<Record<string, string>>,
    { env = this.#env, flags = [], input = "" }: AdminInput = {},
  ): Promise<unknown> {
    const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
    const command = [
      builtFile("server/main.ts"),
      "admin",
      name,
      ...args,
      ...flags.map((flag) => `--${flag}`),
    ];
    const running = promisify(execFile)(process.execPath, command, { cwd: PACKAGE_ROOT, env });
    running.child.stdin?.end(input);
    return JSON.parse((await running).stdout);
  }

  /**
   * A second server beside the running one, on the same engines, whose approval window is short: so that the story
   * can show an expiry without waiting for a day. Answers its address.
   */
  async impatientServer(windowSeconds: number): Promise<string> {
    const settings = { EVM_RPC_URL: this.chainUrl, APPROVAL_WINDOW_SECONDS: String(windowSeconds) };
    return this.#addressOf(await this.#role("server", settings));
  }

  /**
   * A server and a worker that may call receivers on this machine, which the running service may not: on the same engines,
   * with a database, a task queue and files of their own. Answers its address, and what an admin command for it needs.
   */
  async ownService(name: string, folder: string, settings: NodeJS.ProcessEnv): Promise<OwnService> {
    const uri = new URL(this.runtime.mongodb.uri);
    uri.pathname = `/${name}`;
    const env = {
      ...settings,
      MONGODB_URI: uri.toString(),
      TEMPORAL_TASK_QUEUE: name,
      AUDIT_ANCHOR_FILE: join(folder, "audit-anchors.jsonl"),
      AUDIT_ANCHOR_SECONDS: "0",
    };
    const [server] = await Promise.all([this.#role("server", env), this.#role("worker", env)]);
    return { baseUrl: await this.#addressOf(server), env: this.#engines(env) };
  }

  /** A simulated card network, whose books are gone with it. Answers its address. */
  async cardNetwork(): Promise<string> {
    const args = [builtFile("src/engines/card-network/main.ts")];
    const child = spawn(process.execPath, args, { cwd: PACKAGE_ROOT, stdio: ["ignore", "pipe", "inherit"] });
    this.#children.push(child);
    return this.#addressOf(child, /listening on (http\S+)/);
  }

  #engines(settings: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
    const { mongodb, temporal } = this.runtime;
    const isNamed = masterKeySetting(this.#env) !== null;
    return {
      ...this.#env,
      DATA_DIR: this.#dataDir,
      HOST: "127.0.0.1",
      PORT: "0",
      LOG_LEVEL: "fatal",
      ...(isNamed ? {} : { MASTER_KEYS_FILE: join(this.#dataDir, MASTER_KEY_FILE_NAME) }),
      MONGODB_URI: mongodb.uri,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
      ...settings,
    };
  }

  async #role(role: "server" | "worker", settings: NodeJS.ProcessEnv) {
    const child = spawn(process.execPath, [builtFile("server/main.ts"), role], {
      cwd: PACKAGE_ROOT,
      stdio: ["ignore", "pipe", "inherit"],
      env: this.#engines(settings),
    });
    this.#children.push(child);
    return child;
  }

  async #addressOf(
    child: ChildProcessByStdio<null, Readable, null>,
    shown = /REST\s+(http\S+)\/v1/,
  ): Promise<string> {
    const timer = setTimeout(() => child.kill(), SERVER_START_MS);
    for await (const line of createInterface({ input: child.stdout })) {
      const address = shown.exec(line)?.[1];
      if (address === undefined) continue;
      clearTimeout(timer);
      return address;
    }
    throw new StepDiffers("a process of the demo's own did not start");
  }

  /** Ends the services that it has started. May be called again. */
  async close(): Promise<void> {
    const running = this.#children.filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    const ended = running.map((child) => new Promise((done) => child.once("exit", done)));
    for (const child of running) child.kill();
    await Promise.all(ended);
  }
}

/** Says what happened, after it was checked. */
export function tell(who: string, what: string): void {
  process.stdout.write(`${who.padEnd(8)} ${what}\n`);
}

/** Fails the story unless what happened is what should. */
export function expectStep(what: string, actual: unknown, expected: unknown): void {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new StepDiffers(`${what}: expected ${right}, got ${left}`);
}

export const dollars = (cents: number): string => `${(cents / 100).toFixed(2)} USD`;
