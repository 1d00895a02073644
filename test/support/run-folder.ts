import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where Linux keeps files in memory. */
const IN_MEMORY = "/dev/shm";
/** The run's engines and those that tests start take up to 3 GiB at a time. */
const FREE_BYTES_MIN = 6 * 1024 ** 3;
/** After so long whatever an interrupted run has started has ended. */
const ENDED_SECONDS = 20;

/**
 * A folder for all files of the run, its engines' and its tests', which goes with it. In memory where there is room: the
 * engines sync each write to the disk, and a disk that is shared makes them late. Processes are killed there as anywhere.
 */
export async function runFolder(): Promise<string> {
  const folder = await mkdtemp(
    join((await hasRoom(IN_MEMORY)) ? IN_MEMORY : tmpdir(), "spending-control-run-"),
  );
  process.once("exit", () => removeNowOrSoon(folder));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => process.exit(130));
  return folder;
}

/** A run that is interrupted leaves processes that end with it, but a moment later, and write until then. */
function removeNowOrSoon(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // Below: an error here would be the run's result.
  }
  const command = `sleep ${String(ENDED_SECONDS)}; rm -rf -- "$0"`;
  spawn("sh", ["-c", command, folder], { detached: true, stdio: "ignore" }).unref();
}

const hasRoom = (path: string): Promise<boolean> =>
  statfs(path).then(
    ({ bavail, bsize }) => bavail * bsize >= FREE_BYTES_MIN,
    () => false,
  );
