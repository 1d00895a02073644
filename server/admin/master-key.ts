import { join } from "node:path";
import { readIfThere } from "../../activities/durable-files.ts";
import { readConfig } from "../config.ts";
import { loadMasterKey, MASTER_KEY_FILE } from "../secrets/load-master-key.ts";
import type { MasterKey } from "../secrets/master-key.ts";

/** The service's master key for a command beside it: the environment's, or DATA_DIR's; null: neither is there. Makes none. */
export async function masterKeyBeside(env: NodeJS.ProcessEnv): Promise<MasterKey | null> {
  const { dataDir, masterKey: fromEnvironment } = readConfig(env, "127.0.0.1");
  const isInFile = (await readIfThere(join(dataDir, MASTER_KEY_FILE))) !== null;
  if ((fromEnvironment ?? "").trim() === "" && !isInFile) return null;
  return loadMasterKey({ fromEnvironment, embeddedDataDir: dataDir });
}
