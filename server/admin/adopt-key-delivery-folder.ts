import { readConfig } from "../config.ts";
import { adoptDeliveryKeys } from "../key-deliveries/folder.ts";
import { keepCommand } from "./keep-command.ts";
import { masterKeyBeside } from "./master-key.ts";
import { connected } from "./connecting.ts";

/**
 * `adopt-key-delivery-folder`: makes `KEY_DELIVERY_DIR` the folder that the service's servers and workers use, where the one
 * that they used is lost. Agents' first keys that were not delivered yet are lost with that one.
 */
export const adoptKeyDeliveryFolder = (env: NodeJS.ProcessEnv): Promise<{ readonly folder: string }> =>
  connected(env, async ({ db }) => {
    const { keyDeliveryDir: folder } = readConfig(env, "127.0.0.1");
    await adoptDeliveryKeys(db, folder, new Date());
    const masterKey = await masterKeyBeside(env);
    const command = {
      via: "adopt-key-delivery-folder",
      action: "adoptKeyDeliveryFolder",
      resource: "key_delivery_folder",
      after: { folder },
    };
    // Without the key nobody can seal an entry; the command itself needs none.
    if (masterKey !== null) await keepCommand(db, masterKey, command);
    return { folder };
  });
