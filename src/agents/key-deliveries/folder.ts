import type { Db } from "mongodb";
import { DeliveryKeyFiles } from "./delivery-keys.ts";
import { ConfigError } from "../../lib/config-error.ts";
import { readOrCreateSetting, settingsOf } from "../../secrets/settings.ts";

const FOLDER_SETTING = "key-delivery-folder";

/**
 * Opens the folder of the keys that seal agents' first keys, and holds it against the one that the database's other servers and
 * workers use: with two of them, a key could not be delivered again by every server, and not be destroyed by every worker. A
 * service with an embedded database does not share it, and takes the folder that it is given. Throws `ConfigError`.
 */
export async function openDeliveryKeys(
  db: Db,
  folder: string,
  now: Date,
  { isAlone }: { readonly isAlone: boolean },
): Promise<DeliveryKeyFiles> {
  const keys = await filesIn(folder);
  if (isAlone) {
    await adoptDeliveryKeys(db, folder, now);
    return keys;
  }
  const setting = await readOrCreateSetting(db, FOLDER_SETTING, () => ({
    value: keys.folderId,
    createdAt: now,
  }));
  if (setting.value === keys.folderId) return keys;
  throw new ConfigError(
    `${folder} is not the folder for key deliveries that this database is used with; servers and workers share one: ` +
      "set KEY_DELIVERY_DIR to it. Where it is lost, `npm run admin -- adopt-key-delivery-folder` takes this one; " +
      "agents' first keys that were not delivered yet are lost with the old one.",
  );
}

/** Makes this folder the one that the database is used with. */
export async function adoptDeliveryKeys(db: Db, folder: string, now: Date): Promise<void> {
  const { folderId } = await filesIn(folder);
  const value = { value: folderId, createdAt: now };
  await settingsOf(db).updateOne({ _id: FOLDER_SETTING }, { $set: value }, { upsert: true });
}

async function filesIn(folder: string): Promise<DeliveryKeyFiles> {
  try {
    return await DeliveryKeyFiles.in(folder);
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new ConfigError(`KEY_DELIVERY_DIR: ${folder} cannot be used (${reason}).`);
  }
}
