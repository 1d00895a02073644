import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { pageCommands } from "../../test/support/page-commands.ts";
import type { Cluster } from "./cluster.ts";

const run = promisify(execFile);

const PAGE = "docs/recovery.md";
/** Payments go on for so long after Temporal's backup, which lacks them. */
const LATER_MS = 2_000;
const COMMAND_MS = 240_000;
const OUTPUT_BYTES = 16_777_216;
const PRELUDE = `set -e; npm() { command npm --prefix "$ROOT" "$@"; }\n`;

const ofMongodb = (line: string): boolean => line.includes("$MONGODB_FOLDER");
const ofPostgresql = (line: string): boolean => line.includes("$PGDATA") || line.startsWith("pg_");

/**
 * Loses both engines and restores them by the commands of the page: Temporal from a backup that is older than MongoDB's. MongoDB's is
 * made while servers and workers are stopped, so that it lacks no payment that was answered, and the audit can ask for all. The engines
 * wake so many days later.
 */
export async function restoreEngines(cluster: Cluster, afterDays = 0): Promise<void> {
  const { clock, database, env, folder, roles, set, temporal } = cluster;
  const cwd = await mkdtemp(join(folder, "backup-"));
  await database.own(cwd);
  const paste = async (lines: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<void> => {
    for (const line of lines) {
      const shell = ["bash", "-c", `${PRELUDE}${line}`];
      const [program = "", ...args] = ofPostgresql(line) ? [...database.asOwner, ...shell] : shell;
      const all = { ...env, ...database.settings, ...clock.ofNode, ...more, ROOT: PACKAGE_ROOT };
      await run(program, args, {
        cwd,
        env: all,
        maxBuffer: OUTPUT_BYTES,
        timeout: COMMAND_MS,
      }).catch((error: unknown) => {
        const said =
          error instanceof Error && "stdout" in error && "stderr" in error
            ? `${String(error.stdout)}\n${String(error.stderr)}`
            : "";
        throw new Error(`${line}\n${said}`, { cause: error });
      });
    }
  };
  const [backUp, unpack, compare] = await Promise.all(
    ["**Engines of your own.**", "**To restore**", "Then start"].map((after) => pageCommands(PAGE, after)),
  );
  if (backUp === undefined || unpack === undefined || compare === undefined)
    throw new Error(`${PAGE} lacks commands`);
  await paste(backUp.filter((line) => !ofMongodb(line)));
  await sleep(LATER_MS);
  const releases = await Promise.all(roles.map((role) => role.hold()));
  try {
    await Promise.all(temporal.map((node) => node.stop()));
    await set.away(async (folders) => {
      await paste(backUp.filter(ofMongodb), { MONGODB_FOLDER: folders[0] });
      if (afterDays > 0) await cluster.forward(afterDays);
      for (const each of folders) await paste(unpack.filter(ofMongodb), { MONGODB_FOLDER: each });
    });
    await database.away(() => paste(unpack.filter((line) => !ofMongodb(line))));
    await Promise.all(temporal.map((node) => node.start()));
  } finally {
    for (const release of releases) release();
  }
  await Promise.all(roles.map((role) => role.ready()));
  await paste(compare);
}
