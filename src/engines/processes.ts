import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { hasErrorCode } from "../lib/error-code.ts";

const POLL_INTERVAL_MS = 25;
const PS_TIMEOUT_MS = 5_000;

const onLinux = process.platform === "linux";
const run = promisify(execFile);

const ps = async (...args: string[]): Promise<string> => {
  try {
    return (await run("ps", args, { timeout: PS_TIMEOUT_MS, maxBuffer: 16_777_216 })).stdout;
  } catch {
    return ""; // `ps` exits with 1 when no process matches
  }
};

/** Returns the fields of /proc/<pid>/stat after the command's name, which may itself contain spaces and brackets. */
async function statFields(pid: number): Promise<string[] | null> {
  try {
    const stat = await readFile(`/proc/${String(pid)}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** Whether the process runs. One that only waits to be reaped does not; a container's pid 1 may never reap. */
export async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return hasErrorCode(error, "EPERM");
  }
  const state = onLinux ? (await statFields(pid))?.[0] : (await ps("-o", "stat=", "-p", String(pid))).trim();
  return state !== undefined && state !== "" && !state.startsWith("Z");
}

let bootId: Promise<string> | undefined;
const readBootId = (): Promise<string> =>
  (bootId ??= readFile("/proc/sys/kernel/random/boot_id", "utf8").then(
    (id) => id.trim().slice(0, 8),
    () => "boot",
  ));

/**
 * Returns a process's start time together with its boot, which distinguish it from a later process with the same pid.
 * Null if there is no such process. Safe in a file name.
 */
export async function startMarker(pid: number): Promise<string | null> {
  if (onLinux) {
    const startTime = (await statFields(pid))?.[19];
    return startTime === undefined ? null : `${await readBootId()}-${startTime}`;
  }
  const started = (await ps("-o", "lstart=", "-p", String(pid))).trim();
  return started === "" ? null : started.replace(/[^A-Za-z0-9]+/g, "-");
}

export interface ProcessLine {
  readonly pid: number;
  /** The arguments, each followed by a space. */
  readonly commandLine: string;
}

async function readCommandLine(pid: number): Promise<ProcessLine | null> {
  try {
    const raw = await readFile(`/proc/${String(pid)}/cmdline`, "utf8");
    return raw === "" ? null : { pid, commandLine: raw.replaceAll("\0", " ") };
  } catch {
    return null;
  }
}

/** Returns the effective user id of a process; null if there is no such process. */
export async function effectiveUserOf(pid: number): Promise<number | null> {
  try {
    const found = onLinux
      ? /^Uid:\s+\d+\s+(\d+)/m.exec(await readFile(`/proc/${String(pid)}/status`, "utf8"))
      : /^\s*(\d+)/.exec(await ps("-o", "uid=", "-p", String(pid)));
    return found?.[1] === undefined ? null : Number(found[1]);
  } catch {
    return null;
  }
}

/** Returns the command lines of all visible processes. */
export async function listProcesses(): Promise<readonly ProcessLine[]> {
  if (onLinux) {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
    const lines = await Promise.all(pids.map(readCommandLine));
    return lines.filter((line) => line !== null);
  }
  const found: ProcessLine[] = [];
  for (const line of (await ps("-axww", "-o", "pid=,command=")).split("\n")) {
    const match = /^\s*(\d+)\s+(.*)$/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) {
      found.push({ pid: Number(match[1]), commandLine: `${match[2]} ` });
    }
  }
  return found;
}

/** Waits until the process has ended; false if it still runs after `timeoutMs`. */
export async function waitForEnd(pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (await isAlive(pid)) {
    if (Date.now() >= deadline) return false;
    await sleep(POLL_INTERVAL_MS);
  }
  return true;
}

/** Sends a signal; ignores a process that has already ended. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasErrorCode(error, "ESRCH")) throw error;
  }
}

const KILL_BOUND_MS = 5_000;

/** Ends a process: SIGTERM, and SIGKILL if it still runs after `graceMs`. False if even that did not end it in time. */
export async function endProcess(pid: number, graceMs: number): Promise<boolean> {
  signalProcess(pid, "SIGTERM");
  if (await waitForEnd(pid, graceMs)) return true;
  signalProcess(pid, "SIGKILL");
  return waitForEnd(pid, KILL_BOUND_MS);
}
