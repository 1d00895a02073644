import { constants } from "node:fs";
import { access, chmod, lstat, mkdir, readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { EngineError, reasonOf } from "./errors.ts";
import { hasErrorCode } from "../lib/error-code.ts";
import { LOOPBACK } from "./ports.ts";
import { effectiveUserOf, endProcess, listProcesses } from "./processes.ts";
import { lockHolder, type ProcessLock, takeLock } from "./process-lock.ts";
import type { OnProgress } from "./progress.ts";

/** Wait for a service that got SIGTERM and may still be stopping. */
const LOCK_WAIT_MS = 1_000;
/** A guardian ends its engine in less than 2 seconds after the service has died. */
const ORPHAN_GRACE_MS = 4_000;

/** Marks a folder as having been a DATA_DIR before. */
const LOCK = "lock";

const lockFolder = (dataDir: string): string => path.join(dataDir, LOCK);

/** Returns the pid of the live service that holds the DATA_DIR, or null. */
export const dataDirHolder = (dataDir: string): Promise<number | null> => lockHolder(lockFolder(dataDir));

/**
 * Characters that a DATA_DIR must not contain: the dev server passes its file's name to SQLite in a URI, unescaped, and
 * would write to another place.
 */
const UNBEARABLE = /[?#%]/;

export interface HeldDataDir {
  /** Absolute, without symbolic links: the engines' command lines are recognized by this path. */
  readonly path: string;
  release(): Promise<void>;
}

/**
 * Prepares the DATA_DIR and holds it for this process until `release` or the process's death, kill -9 included. Throws
 * EngineError DATA_DIR if it cannot be written or another live service holds it.
 */
export async function holdDataDir(dataDir: string): Promise<HeldDataDir> {
  let folder: string;
  try {
    await mkdir(path.join(dataDir, "logs"), { recursive: true, mode: 0o700 });
    folder = await realpath(dataDir);
    await refuseForeign(folder);
    await closeToOthers(folder);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    await access(path.join(folder, "logs"), constants.W_OK);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    const message = `DATA_DIR ${path.resolve(dataDir)} cannot be written: ${reasonOf(error)}`;
    throw new EngineError("DATA_DIR", message, { cause: error });
  }
  if (UNBEARABLE.test(folder)) {
    throw new EngineError(
      "DATA_DIR",
      `DATA_DIR ${folder} has a ?, # or % in its path, which the Temporal dev server cannot bear: choose another folder.`,
    );
  }
  const lock: ProcessLock = await takeLock(lockFolder(folder), {
    waitMs: LOCK_WAIT_MS,
    held: (pid) =>
      new EngineError(
        "DATA_DIR",
        `DATA_DIR ${folder} is in use by a running service (process ${String(pid)}): stop it, or set DATA_DIR to another folder.`,
      ),
  });
  return { path: folder, release: () => lock.release() };
}

const OWNER_ONLY_FOLDER = 0o700;
const OTHERS = 0o077;

/** Files that are read or written by name in a DATA_DIR and must belong to the service's user. */
const OURS = [".", LOCK, "logs", "logs/service.log", "master.key", "mongodb.key", "runtime.json"] as const;

/** Throws EngineError DATA_DIR for a folder or file of another user, who could open it or know its content. */
async function refuseForeign(folder: string): Promise<void> {
  const user = process.geteuid?.();
  for (const name of OURS) {
    const found = await lstatIfThere(path.join(folder, name));
    if (found === null) continue;
    const what = name === "." ? `DATA_DIR ${folder}` : `${path.join(folder, name)} in DATA_DIR`;
    if (found.isSymbolicLink()) {
      throw new EngineError("DATA_DIR", `${what} is a symbolic link: remove it, or choose another folder.`);
    }
    if (user !== undefined && found.uid !== user) {
      const whose = `belongs to another user (${String(found.uid)}, not ${String(user)})`;
      throw new EngineError(
        "DATA_DIR",
        `${what} ${whose}: choose a folder of your own, or take it over (chown).`,
      );
    }
  }
}

async function lstatIfThere(file: string) {
  try {
    return await lstat(file);
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return null;
    throw error;
  }
}

/** Files allowed in a future DATA_DIR: the service's log is already open, and a volume has its own folder. */
const OF_A_NEW_ONE: ReadonlySet<string> = new Set(["logs", "lost+found"]);

/**
 * Closes a folder that other users could read. Throws EngineError DATA_DIR for a folder that is also used for something
 * else, such as `/tmp`, which the service must not close.
 */
async function closeToOthers(folder: string): Promise<void> {
  const { mode } = await stat(folder);
  if ((mode & OTHERS) === 0) return;
  const names = await readdir(folder);
  if (!names.includes(LOCK) && names.some((name) => !OF_A_NEW_ONE.has(name))) {
    throw new EngineError(
      "DATA_DIR",
      `DATA_DIR ${folder} is open to other users and has other things in it: choose an empty folder, or close this one (chmod 700).`,
    );
  }
  await chmod(folder, OWNER_ONLY_FOLDER);
}

/** Parts of command lines that only this service's engines on this DATA_DIR have. */
export interface EngineTraces {
  readonly mongodbFolder: string;
  readonly temporalDatabase: string;
  readonly chainFolder: string;
  readonly cardNetworkFolder: string;
}

function engineOf(commandLine: string, traces: EngineTraces): string | null {
  // The guardians carry the same arguments, and end with their engines.
  if (commandLine.startsWith("/bin/sh -c ")) return null;
  if (commandLine.includes(` --dbpath ${traces.mongodbFolder} --bind_ip ${LOOPBACK} `)) return "mongod";
  if (commandLine.includes(` --db-filename ${traces.temporalDatabase} --namespace `)) return "temporal";
  if (commandLine.includes(` --dump-state ${traces.chainFolder}/`)) return "anvil";
  if (commandLine.includes(` --books ${traces.cardNetworkFolder} `)) return "card-network";
  return null;
}

/**
 * Ends engines that a dead service left on this DATA_DIR, including dying ones, so that no other process uses the
 * files. Engines are found by command line rather than by recorded pid: a pid may have been reused, and a service can
 * die before recording any. The caller must hold the DATA_DIR, so no live service owns the engines. Other users'
 * processes are ignored, since they may have any command line.
 * Throws EngineError DATA_DIR if one cannot be ended.
 */
export async function endOrphans(traces: EngineTraces, onProgress: OnProgress): Promise<void> {
  await Promise.all(
    (await listProcesses()).map(async ({ pid, commandLine }) => {
      const name = engineOf(commandLine, traces);
      if (name === null || (await effectiveUserOf(pid)) !== process.geteuid?.()) return;
      onProgress(`${name}: ending process ${String(pid)}, which an earlier run left behind`);
      if (await endedOrNotOurs(pid)) return;
      throw new EngineError("DATA_DIR", `${name} of an earlier run (process ${String(pid)}) does not end.`);
    }),
  );
}

/** Whether a process has ended, or cannot be signalled and so now belongs to another user. */
async function endedOrNotOurs(pid: number): Promise<boolean> {
  try {
    return await endProcess(pid, ORPHAN_GRACE_MS);
  } catch (error) {
    if (hasErrorCode(error, "EPERM")) return true;
    throw error;
  }
}
