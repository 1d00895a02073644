import { randomUUID } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineError } from "./errors.ts";
import { isAlive, startMarker } from "./processes.ts";

const RETRY_MIN_MS = 20;
const RETRY_SPREAD_MS = 80;
/** Minimum time to try for a lock that looks held, since contenders that see one another all withdraw. */
const CONTENTION_MS = 500;

export interface ProcessLock {
  release(): Promise<void>;
}

interface Claim {
  readonly file: string;
  readonly pid: number;
  readonly marker: string;
}

function parseClaim(file: string): Claim | null {
  const match = /^(\d+)\.([A-Za-z0-9-]+)\.[0-9a-f-]{36}$/.exec(file);
  if (match?.[1] === undefined || match[2] === undefined) return null;
  return { file, pid: Number(match[1]), marker: match[2] };
}

/** Returns the claims of running processes. Removes the claims of ended ones, whose names never recur. */
async function liveClaims(folder: string): Promise<readonly Claim[]> {
  const live: Claim[] = [];
  for (const file of await readdir(folder)) {
    const claim = parseClaim(file);
    if (claim === null) continue;
    if ((await isAlive(claim.pid)) && (await startMarker(claim.pid)) === claim.marker) live.push(claim);
    else await rm(path.join(folder, file), { force: true });
  }
  return live;
}

/** Returns the pid of the live process that holds the lock, or null. */
export async function lockHolder(folder: string): Promise<number | null> {
  try {
    return (await liveClaims(folder))[0]?.pid ?? null;
  } catch {
    return null; // no folder, no holder
  }
}

export interface LockOptions {
  /** Maximum wait for a holder to release the lock. */
  readonly waitMs: number;
  /** Returns the error for a lock that stays held. */
  held(pid: number): EngineError;
  /** Called once if there is something to wait for. */
  onWait?(pid: number): void;
}

/**
 * Takes a lock between processes that needs no cleaning up: a killed holder no longer holds it.
 * Each contender first writes a claim with its pid and start time, and only then reads the other claims. So of two
 * concurrent contenders at least one sees the other and withdraws; never do two believe that they hold it. Node has no
 * flock, and a lock file that is broken when stale can be broken twice.
 * Throws what `held` returns if another live process still holds the lock after `waitMs`.
 */
export async function takeLock(folder: string, options: LockOptions): Promise<ProcessLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const marker = (await startMarker(process.pid)) ?? "unknown";
  const deadline = Date.now() + Math.max(options.waitMs, CONTENTION_MS);
  let isReported = false;
  for (;;) {
    const mine = `${String(process.pid)}.${marker}.${randomUUID()}`;
    await writeFile(path.join(folder, mine), "", { mode: 0o600 });
    const other = (await liveClaims(folder)).find((claim) => claim.file !== mine);
    if (other === undefined) return { release: () => rm(path.join(folder, mine), { force: true }) };
    await rm(path.join(folder, mine), { force: true });
    if (Date.now() >= deadline) throw options.held(other.pid);
    if (!isReported && other.pid !== process.pid) options.onWait?.(other.pid);
    isReported = true;
    await sleep(RETRY_MIN_MS + Math.random() * RETRY_SPREAD_MS);
  }
}
