import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { rotateMasterKey } from "../../server/admin/rotate-master-key.ts";
import { builtFile } from "../../src/lib/package-root.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { CHAOS_KEYS } from "../chaos/deployment.ts";
import type { Accomplices } from "../chaos/site.ts";
import type { Random } from "../random.ts";
import type { Cluster } from "./cluster.ts";

const PAUSE_MS = 2_000;
const FOLLOWED_MS = 240_000;
/** Values under the old key whose loss does no harm: no client renews a session, and purchases are asked for again. */
const MAY_BE_LOST: ReadonlySet<string> = new Set([
  "sessions",
  "paid answers of the last hour",
  "purchases in progress",
]);

/** Rotates the master key as the page says: both keys, the new one first, the command, retirement, the new one alone. */
export async function rotateKeys(
  cluster: Cluster,
  random: Random,
  { claimAll }: Pick<Accomplices, "claimAll">,
): Promise<void> {
  const { MASTER_KEY, MASTER_KEYS: old = MASTER_KEY ?? "" } = cluster.env;
  const next = CHAOS_KEYS[CHAOS_KEYS.indexOf(old) + 1];
  if (next === undefined) throw new Error("there is no other master key");
  await cluster.restartUnder([old, next]);
  await cluster.restartUnder([next, old]);
  await killedCommand(cluster);
  const oldId = MasterKey.parse(old, "the old key").newestId;
  const rotate = async (retire: string | null) => {
    const options = { isCheck: false, retire, newSessionKey: false, onProgress: () => undefined };
    const { keys } = await rotateMasterKey(cluster.env, options);
    const key = keys.find(({ id }) => id === oldId);
    if (key === undefined) throw new Error(`nothing is known of the master key ${oldId}`);
    return key;
  };
  const until = performance.now() + FOLLOWED_MS;
  for (;;) {
    await claimAll();
    const { neededBy } = await rotate(null);
    if (Object.keys(neededBy).every((what) => MAY_BE_LOST.has(what))) break;
    if (performance.now() > until) throw new Error(`still under the old key: ${JSON.stringify(neededBy)}`);
    await sleep(PAUSE_MS);
  }
  const struck = [random.pick(cluster.servers), random.pick(cluster.workers)];
  for (const role of struck) role.kill();
  const [{ state }] = await Promise.all([rotate(oldId), ...struck.map((role) => role.ready())]);
  if (state !== "retired") throw new Error(`the old key is ${state}`);
  await cluster.restartUnder([next]);
}

/** The command as operators run it, killed at its first progress. */
async function killedCommand({ env }: Cluster): Promise<void> {
  const args = [builtFile("server/main.ts"), "admin", "rotate-master-key"];
  const command = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  await once(command.stderr, "data");
  command.kill("SIGKILL");
  await once(command, "close");
}
