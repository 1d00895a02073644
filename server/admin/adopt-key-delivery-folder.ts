import type { Db } from "mongodb";
import { readLiveRuntimeFile } from "../../src/engines/runtime-file.ts";
import { startEngines } from "../../src/engines/start.ts";
import { readConfig } from "../config.ts";
import { reachMongodb } from "../connections.ts";
import { adoptDeliveryKeys } from "../key-deliveries/folder.ts";

const ANY_PORTS = { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 } as const;

const ignored = (): void => undefined;

/**
 * `adopt-key-delivery-folder`: makes `KEY_DELIVERY_DIR` the folder that the database is used with, where the one before is
 * lost. Servers and workers are started with it afterwards; what lay in the old one can't be delivered any more.
 */
export async function adoptKeyDeliveryFolder(env: NodeJS.ProcessEnv): Promise<{ readonly folder: string }> {
  const { dataDir, keyDeliveryDir: folder } = readConfig(env, "127.0.0.1");
  await onDatabase(env, dataDir, (db) => adoptDeliveryKeys(db, folder, new Date()));
  return { folder };
}

/** The database that is named or runs; or else, since the service does not start without its folder, one started for this. */
async function onDatabase(
  env: NodeJS.ProcessEnv,
  dataDir: string,
  work: (db: Db) => Promise<void>,
): Promise<void> {
  const uri = env["MONGODB_URI"] ?? (await readLiveRuntimeFile(dataDir))?.mongodb.uri;
  if (uri !== undefined) return connectedTo(uri, work);
  const engines = await startEngines({
    dataDir,
    env,
    ports: ANY_PORTS,
    chainSnapshotMs: null,
    onProgress: ignored,
    onUnexpectedExit: ignored,
  });
  try {
    await connectedTo(engines.mongodb.uri, work);
  } finally {
    await engines.stop();
  }
}

async function connectedTo(uri: string, work: (db: Db) => Promise<void>): Promise<void> {
  const { db, mongo } = await reachMongodb(uri);
  try {
    await work(db);
  } finally {
    await mongo.close();
  }
}
