import { join } from "node:path";
import { readIfThere } from "../../src/lib/durable-files.ts";
import { AdminError } from "./connecting.ts";
import { readConfig } from "../config.ts";
import { loadMasterKey, MASTER_KEY_FILE_NAME } from "../../src/secrets/load-master-key.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";

/** Returns the master key that seals a command's audit entry. Throws if there is none. */
export async function requireMasterKey(env: NodeJS.ProcessEnv): Promise<MasterKey> {
  const masterKey = await findMasterKey(env);
  if (masterKey !== null) return masterKey;
  throw new AdminError(
    "This command writes to the audit log: set MASTER_KEY, or DATA_DIR to the service's folder.",
  );
}

/** Returns the service's master key from the environment or DATA_DIR; null if neither has one. Never creates a key. */
export async function findMasterKey(env: NodeJS.ProcessEnv): Promise<MasterKey | null> {
  const { dataDir, masterKey: setting } = readConfig(env, "127.0.0.1");
  if (setting === null && (await readIfThere(join(dataDir, MASTER_KEY_FILE_NAME))) === null) return null;
  return loadMasterKey({ setting, embeddedDataDir: dataDir });
}
