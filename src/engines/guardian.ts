import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { EngineError, reasonOf } from "./errors.ts";
import { lastWords, openLog } from "./log-file.ts";
import { signalProcess } from "./processes.ts";

/**
 * Runs an engine that never outlives its parent.
 * Its standard input is a pipe whose other end only the service holds, and the kernel closes that end however the
 * service dies. A child of this shell waits for that and then ends the engine: SIGTERM, and SIGKILL after 1.5 seconds.
 * The shell writes the engine's pid to descriptor 3, and ends when the engine does, with the engine's status.
 */
const GUARDIAN_SCRIPT = `
exec 4<&0 </dev/null
"$@" 3>&- 4<&- &
engine=$!
(
  exec 3>&-
  read -r _ <&4
  kill -TERM "$engine" 2>/dev/null
  n=0
  while [ "$n" -lt 15 ] && kill -0 "$engine" 2>/dev/null; do
    sleep 0.1 2>/dev/null || sleep 1
    n=$((n + 1))
  done
  kill -KILL "$engine" 2>/dev/null
) >/dev/null 2>&1 &
watcher=$!
echo "$engine" >&3
exec 3>&- 4<&-
wait "$engine"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
`;

export interface Launch {
  /** Name in messages: "mongod". */
  readonly name: string;
  readonly binary: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly logFile: string;
}

export interface GuardedProcess {
  /** The engine's pid, not the guardian's. */
  readonly pid: number;
  /** Resolves when the engine has ended, with one line that says how. */
  readonly ended: Promise<string>;
  /** Sends a signal, unless the engine has ended: its pid may have been reused. */
  signal(signal: NodeJS.Signals): void;
}

async function readPid(pipe: Readable): Promise<number> {
  let text = "";
  for await (const chunk of pipe) text += String(chunk);
  const pid = Number(text.trim());
  if (!Number.isInteger(pid) || pid <= 0) throw new Error("its guardian ended before it started it");
  return pid;
}

const SHELL_SIGNAL_BASE = 128;

function howItEnded(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal !== null) return `its guardian was ended by ${signal}`;
  if (code !== null && code > SHELL_SIGNAL_BASE) return `ended by signal ${String(code - SHELL_SIGNAL_BASE)}`;
  return `ended with code ${String(code)}`;
}

/**
 * Starts an engine under its guardian, in a session of its own: Ctrl-C in the terminal reaches only the service, which
 * ends its engines after draining. Throws EngineError START_FAILED if it cannot be started at all.
 */
export async function startGuarded(launch: Launch): Promise<GuardedProcess> {
  const log = await openLog(launch.logFile);
  try {
    const child = spawn("/bin/sh", ["-c", GUARDIAN_SCRIPT, launch.name, launch.binary, ...launch.args], {
      detached: true,
      env: launch.env,
      stdio: ["pipe", log.handle.fd, log.handle.fd, "pipe"],
    });
    let over = false;
    const exited = new Promise<void>((resolve) => {
      child.once("exit", () => {
        over = true;
        resolve();
      });
    });
    const failed = new Promise<never>((_resolve, reject) => {
      child.once("error", reject);
    });
    // without a listener, an error of the pipe (to which nothing is ever written) would end the service
    child.stdin?.on("error", () => undefined);
    const pidPipe = child.stdio[3];
    if (pidPipe === null || pidPipe === undefined || !("read" in pidPipe)) throw new Error("no pipe");
    const pid = await Promise.race([readPid(pidPipe), failed]);
    const ended = exited.then(async () => {
      const words = await lastWords(launch.logFile, log.from);
      return `${howItEnded(child.exitCode, child.signalCode)}; its last words: ${words}`;
    });
    return { pid, ended, signal: (signal) => void (over || signalProcess(pid, signal)) };
  } catch (error) {
    const cause = `${launch.name} (${launch.binary}) could not be started: ${reasonOf(error)}`;
    throw new EngineError("START_FAILED", cause, { cause: error });
  } finally {
    await log.handle.close();
  }
}
