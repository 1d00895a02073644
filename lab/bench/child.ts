import { type ChildProcess, fork } from "node:child_process";
import { builtFile } from "../../src/lib/package-root.ts";

/** Messages between a child and its parent. */
export type ChildMessage =
  | { readonly type: "ready"; readonly port: number | null }
  | { readonly type: "answer"; readonly value: unknown };
export type ParentMessage =
  | { readonly type: "start"; readonly config: unknown }
  | { readonly type: "stop" }
  | { readonly type: "request"; readonly value: unknown };

const START_MS = 60_000;
const STOP_MS = 15_000;

export interface ChildOptions {
  /** Relative to this folder. */
  readonly entry: string;
  /** Told over its channel: it has secrets, and arguments can be read by every local user. */
  readonly config: unknown;
  readonly profileDir?: string | null;
}

/** A process of the bench's own: it ends when its parent asks for it, and with its parent. */
export class Child {
  readonly #process: ChildProcess;
  readonly #entry: string;
  readonly port: number | null;

  private constructor(process: ChildProcess, entry: string, port: number | null) {
    this.#process = process;
    this.#entry = entry;
    this.port = port;
  }

  /** Starts it with the flags that every process of the bench has, and waits until it is ready. */
  static async start({ entry, config, profileDir = null }: ChildOptions): Promise<Child> {
    const profile = profileDir === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`];
    const child = fork(builtFile(`lab/bench/${entry}`), [], {
      execArgv: profile,
      stdio: ["ignore", 2, 2, "ipc"],
      serialization: "advanced",
    });
    const started = nextMessage(child, entry, START_MS);
    child.send({ type: "start", config } satisfies ParentMessage);
    const message = await started;
    if (message.type !== "ready") throw new Error(`${entry} did not start as it should`);
    return new Child(child, entry, message.port);
  }

  get pid(): number | null {
    return this.#process.pid ?? null;
  }

  /** Asks it for something and waits for the answer; one request at a time. */
  async request<T>(value: unknown, withinMs: number): Promise<T> {
    const answer = nextMessage(this.#process, this.#entry, withinMs);
    this.#process.send({ type: "request", value } satisfies ParentMessage);
    const message = await answer;
    if (message.type !== "answer") throw new Error(`${this.#entry} did not answer`);
    return message.value as T;
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    child.send({ type: "stop" } satisfies ParentMessage);
    await ended;
    clearTimeout(timer);
  }
}

function nextMessage(child: ChildProcess, entry: string, withinMs: number): Promise<ChildMessage> {
  return new Promise((resolve, reject) => {
    const finish = (act: () => void): void => {
      clearTimeout(timer);
      child.off("message", onMessage);
      child.off("exit", onExit);
      act();
    };
    const onMessage = (message: unknown): void => finish(() => resolve(message as ChildMessage));
    const onExit = (code: number | null): void =>
      finish(() => reject(new Error(`${entry} ended by itself (${String(code)})`)));
    const timer = setTimeout(
      () => finish(() => reject(new Error(`${entry} was silent for ${String(withinMs)} ms`))),
      withinMs,
    );
    child.on("message", onMessage);
    child.on("exit", onExit);
  });
}
