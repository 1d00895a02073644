import { randomBytes } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
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
/** Time that a signalled member waits for its clients to fail over, 15 s by default. Here there is no other member. */
const SHUTDOWN_WAIT_MS = "100";
const STOP_GRACE_MS = 15_000;
const POLL_INTERVAL_MS = 40;
const SERVER_SELECTION_TIMEOUT_MS = 1_000;
const NOT_YET_INITIALIZED = 94;
const ALREADY_INITIALIZED = 23;
const USER_NOT_FOUND = 11;
const KEY_SIZE_BYTES = 48;
const PASSWORD_SIZE_BYTES = 32;
const OWNER_ONLY = 0o600;

/** The only account, the service's, with all rights. */
const USER = "agent-spending-control";
const ROLES = ["root"];

/**
 * Lifetime of a transaction whose process was killed while it held locks. By default it is a minute, in which creations
 * in the same team are answered 503. The service's own transactions take at most 5 s.
 */
const TRANSACTION_SECONDS = 10;

/** Folder of mongod's files, inside DATA_DIR. */
export const mongodbFolder = (dataDir: string): string => path.join(dataDir, "mongodb");

const keyFileIn = (dataDir: string): string => path.join(dataDir, "mongodb.key");

/** Credentials of the embedded mongod, valid until the next start. Neither is ever logged or passed as an argument. */
export interface MongodbAccess {
  /** Contents of the key file by which mongod's members authenticate each other. Opens the internal account. */
  readonly key: string;
  /** Password of the service's account. */
  readonly password: string;
}

/**
 * Creates a key file and a password for one start, readable only by their owner. Nothing of an earlier start is needed:
 * the key opens any existing data, and the account gets the new password before the engine counts as ready.
 */
export async function makeMongodbAccess(dataDir: string): Promise<MongodbAccess> {
  const access = {
    key: randomBytes(KEY_SIZE_BYTES).toString("base64"),
    password: randomBytes(PASSWORD_SIZE_BYTES).toString("base64url"),
  };
  const temporary = `${keyFileIn(dataDir)}.new`;
  // An earlier start may have been killed here; no other process holds the DATA_DIR.
  await rm(temporary, { force: true });
  await writeFile(temporary, access.key, { mode: OWNER_ONLY, flag: "wx" });
  await rename(temporary, keyFileIn(dataDir));
  return access;
}

const helloSchema = z.object({ isWritablePrimary: z.boolean(), me: z.string().optional() });
const configSchema = z.object({
  config: z.looseObject({
    version: z.int(),
    members: z.tuple([z.looseObject({ host: z.string() })]),
  }),
});

/** Returns the member's configuration, or null before the first start has initiated the set. */
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
 * Takes one step towards a primary at `host`; returns true once it is the primary. A set initiated on another port does
 * not find itself in its configuration, which is then changed by force; that is safe with one member.
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

/** Sets the account's password for this start, creating the account in data that has none. */
async function admitService(admin: Db, password: string): Promise<void> {
  const account = { pwd: password, roles: ROLES, mechanisms: ["SCRAM-SHA-256"] };
  try {
    await admin.command({ updateUser: USER, ...account });
  } catch (error) {
    if (!(error instanceof MongoServerError && error.code === USER_NOT_FOUND)) throw error;
    await admin.command({ createUser: USER, ...account });
  }
}

async function waitForPrimary(host: string, access: MongodbAccess, signal: AbortSignal): Promise<void> {
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, {
    serverSelectionTimeoutMS: SERVER_SELECTION_TIMEOUT_MS,
    // The internal account of the set's members: it exists before any other, whatever the data contains.
    auth: { username: "__system", password: access.key },
    authSource: "local",
    authMechanism: "SCRAM-SHA-256",
  });
  let last: unknown = new Error("it never answered");
  try {
    while (!signal.aborted) {
      try {
        await client.connect(); // again each time: one that failed closes the client for good otherwise
        const admin = client.db("admin");
        if (await stepToPrimary(admin, host)) return await admitService(admin, access.password);
      } catch (error) {
        last = error; // not up yet, or between two states: polled again
      }
      await sleep(POLL_INTERVAL_MS);
    }
    throw new Error("mongod did not become primary", { cause: last });
  } finally {
    await client.close();
  }
}

export interface MongodOptions {
  readonly binary: string;
  readonly dataDir: string;
  readonly port: number;
  readonly access: MongodbAccess;
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Returns the connection string of the embedded one-node replica set, which supports sessions, transactions and
 * majority writes. It contains the password: show only `withoutCredentials` of it.
 */
export const mongodbUri = (port: number, { password }: MongodbAccess): string =>
  `mongodb://${USER}:${password}@${LOOPBACK}:${String(port)}/?replicaSet=${REPLICA_SET}&authSource=admin`;

/** Removes the credentials from a connection string, so that it may be shown. */
export const withoutCredentials = (uri: string): string => uri.replace(/^([a-z+]+:\/\/)[^@/?]*@/, "$1");

/**
 * mongod as a one-node replica set on loopback with a bounded cache, accessible only to the service's account. Ready
 * once it is the primary and has accepted the account.
 */
export const mongodbSpec = (options: MongodOptions): EngineSpec => ({
  name: "mongod",
  binary: options.binary,
  args: [
    ["--dbpath", mongodbFolder(options.dataDir)],
    ["--bind_ip", LOOPBACK, "--port", String(options.port), "--nounixsocket"],
    ["--keyFile", keyFileIn(options.dataDir)],
    ["--replSet", REPLICA_SET, "--oplogSize", OPLOG_MB],
    ["--wiredTigerCacheSizeGB", CACHE_GB, "--quiet"],
    ["--setParameter", "diagnosticDataCollectionEnabled=false"],
    ["--setParameter", `shutdownTimeoutMillisForSignaledShutdown=${SHUTDOWN_WAIT_MS}`],
    ["--setParameter", `transactionLifetimeLimitSeconds=${TRANSACTION_SECONDS}`],
  ].flat(),
  env: childEnvironment(options.env),
  logFile: options.logFile,
  stopGraceMs: STOP_GRACE_MS,
  remedy:
    `Look into ${options.logFile}. Where the disk is full, make room and start again; ` +
    `where the files in ${mongodbFolder(options.dataDir)} are damaged, put back a backup of all of DATA_DIR; ` +
    "with MONGODB_URI the service uses a MongoDB of your own.",
  ready: (signal) => waitForPrimary(`${LOOPBACK}:${String(options.port)}`, options.access, signal),
});
