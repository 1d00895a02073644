import { readConfig } from "../config.ts";
import { adoptDeliveryKeys } from "../../src/agents/key-deliveries/folder.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { recordCommand } from "./record-command.ts";
import { requireMasterKey } from "./master-key.ts";
import { connected } from "./connecting.ts";

/**
 * `adopt-key-delivery-folder`: makes `KEY_DELIVERY_DIR` the folder that the service's servers and workers use, where the one
 * that they used is lost. Agents' first keys that were not delivered yet are lost with that one.
 */
export const adoptKeyDeliveryFolder = (env: NodeJS.ProcessEnv): Promise<{ readonly folder: string }> =>
  connected(env, async ({ db }) => {
    const { keyDeliveryDir: folder } = readConfig(env, "127.0.0.1");
    const masterKey = await requireMasterKey(env);
    await verifyMasterKey(db, masterKey);
    await adoptDeliveryKeys(db, folder, new Date());
    await recordCommand(db, masterKey, {
      via: "adopt-key-delivery-folder",
      action: "adoptKeyDeliveryFolder",
      resource: { type: "key_delivery_folder", id: null },
      after: { folder },
    });
    return { folder };
  });
