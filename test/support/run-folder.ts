import { rmSync } from "node:fs";
import { mkdtemp, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where Linux keeps files in memory. */
const IN_MEMORY = "/dev/shm";
/** The run's engines and those that tests start take up to 3 GiB at a time. */
const FREE_BYTES_MIN = 6 * 1024 ** 3;

/**
 * A folder for all files of the run, its engines' and its tests', which goes with it. In memory where there is room: the
 * engines sync each write to the disk, and a disk that is shared makes them late. Processes are killed there as anywhere.
 */
export async function runFolder(): Promise<string> {
  const folder = await mkdtemp(
    join((await hasRoom(IN_MEMORY)) ? IN_MEMORY : tmpdir(), "spending-control-run-"),
  );
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => process.exit(130));
  return folder;
}

const hasRoom = (path: string): Promise<boolean> =>
  statfs(path).then(
    ({ bavail, bsize }) => bavail * bsize >= FREE_BYTES_MIN,
    () => false,
  );
