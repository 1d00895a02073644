import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Db, MongoClient, MongoServerError } from "mongodb";
import { z } from "zod";
import { childEnvironment } from "./environment.ts";
import { LOOPBACK } from "./ports.ts";
import type { EngineSpec } from "./supervisor.ts";

const REPLICA_SET = "rs0";
const CACHE_GB = "0.5";
const OPLOG_MB = "1024";
/** By default a signalled member waits 15 s for its clients to go elsewhere; here there is no elsewhere. */
const SHUTDOWN_WAIT_MS = "100";
const STOP_GRACE_MS = 15_000;
const POLL_INTERVAL_MS = 40;
const SERVER_SELECTION_TIMEOUT_MS = 1_000;
const NOT_YET_INITIALIZED = 94;
const ALREADY_INITIALIZED = 23;

/** Where mongod keeps its files, inside DATA_DIR. */
export const mongodbFolder = (dataDir: string): string => path.join(dataDir, "mongodb");

const helloSchema = z.object({ isWritablePrimary: z.boolean(), me: z.string().optional() });
const configSchema = z.object({
  config: z.looseObject({
    version: z.int(),
    members: z.tuple([z.looseObject({ host: z.string() })]),
  }),
});

/** The member's configuration, or null before the first start has initiated the set. */
async function readConfig(admin: Db): Promise<z.infer<typeof configSchema>["config"] | null> {
  try {
    return configSchema.parse(await admin.command({ replSetGetConfig: 1 })).config;
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NOT_YET_INITIALIZED) return null;
    throw error;
  }
}

async function initiate(admin: Db, host: string): Promise<void> {
  try {
    await admin.command({ replSetInitiate: { _id: REPLICA_SET, members: [{ _id: 0, host }] } });
  } catch (error) {
    if (!(error instanceof MongoServerError && error.code === ALREADY_INITIALIZED)) throw error;
  }
}

/**
 * One step towards a primary at `host`; true once it is there. A set that was initiated on another port does not find
 * itself in its configuration; then the configuration is changed by force, which is safe with one member.
 */
async function stepToPrimary(admin: Db, host: string): Promise<boolean> {
  const hello = helloSchema.parse(await admin.command({ hello: 1 }));
  if (hello.isWritablePrimary && hello.me === host) return true;
  const config = await readConfig(admin);
  if (config === null) {
    await initiate(admin, host);
  } else if (config.members[0].host !== host) {
    const members = [{ ...config.members[0], host }];
    const moved = { ...config, version: config.version + 1, members };
    await admin.command({ replSetReconfig: moved, force: true });
  }
  return false;
}

async function waitForPrimary(host: string, signal: AbortSignal): Promise<void> {
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, {
    serverSelectionTimeoutMS: SERVER_SELECTION_TIMEOUT_MS,
  });
  let last: unknown = new Error("it never answered");
  try {
    while (!signal.aborted) {
      try {
        await client.connect(); // again each time: one that failed closes the client for good otherwise
        if (await stepToPrimary(client.db("admin"), host)) return;
      } catch (error) {
        last = error; // not up yet, or between two states: asked again
      }
      await sleep(POLL_INTERVAL_MS);
    }
    throw new Error("mongod did not become primary", { cause: last });
  } finally {
    await client.close();
  }
}

export interface MongodbPlace {
  readonly binary: string;
  readonly dataDir: string;
  readonly port: number;
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
}

/** The connection string for the embedded one-node replica set: sessions, transactions and majority writes work. */
export const mongodbUri = (port: number): string =>
  `mongodb://${LOOPBACK}:${String(port)}/?replicaSet=${REPLICA_SET}`;

/** mongod as a one-node replica set on loopback, with a bounded cache; ready once it is the primary. */
export const mongodbSpec = (place: MongodbPlace): EngineSpec => ({
  name: "mongod",
  binary: place.binary,
  args: [
    ["--dbpath", mongodbFolder(place.dataDir)],
    ["--bind_ip", LOOPBACK, "--port", String(place.port), "--nounixsocket"],
    ["--replSet", REPLICA_SET, "--oplogSize", OPLOG_MB],
    ["--wiredTigerCacheSizeGB", CACHE_GB, "--quiet"],
    ["--setParameter", "diagnosticDataCollectionEnabled=false"],
    ["--setParameter", `shutdownTimeoutMillisForSignaledShutdown=${SHUTDOWN_WAIT_MS}`],
  ].flat(),
  env: childEnvironment(place.env),
  logFile: place.logFile,
  stopGraceMs: STOP_GRACE_MS,
  ready: (signal) => waitForPrimary(`${LOOPBACK}:${String(place.port)}`, signal),
});
