import { Client, type OperatorService } from "@temporalio/client";
import {
  type Db,
  MongoClient,
  type MongoClientOptions,
  MongoServerError,
  MongoServerSelectionError,
} from "mongodb";
import { firstLineOf } from "../lib/plain-error.ts";
import type { TemporalPayloads } from "../temporal/temporal-payloads.ts";
import { EngineUnreachable } from "./engine-unreachable.ts";
import { connectTemporal, type TemporalConnection, type TemporalSecurity } from "./temporal-connection.ts";

export interface Addresses {
  readonly mongodbUri: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  /**
   * Reads TLS settings and credentials as they are now, since certificates are renewed; null for an embedded Temporal.
   */
  readonly readTemporalSecurity: (() => TemporalSecurity) | null;
  /** Task queue; separates services that share a namespace. */
  readonly taskQueue: string;
  /** JSON-RPC endpoint of the chain; null if the wallet rail is not set up. */
  readonly evmRpcUrl: string | null;
}

export interface Connections {
  readonly db: Db;
  readonly mongo: MongoClient;
  readonly temporal: Client;
  readonly temporalOperator: OperatorService;
  readonly payloads: TemporalPayloads;
  /** Security settings of the connection at startup; null for an embedded Temporal. */
  readonly temporalSecurity: TemporalSecurity | null;
  readonly renewTemporal: TemporalConnection["renew"];
  readonly addresses: Addresses;
  close(): Promise<void>;
}

const DATABASE = "agent-spending-control";
const UNAUTHORIZED = 13;

/** Timeout of one operation, so that a client is answered within 5 s whatever is down. */
const MONGODB_TIMEOUT_MS = 3_000;
/** Timeout in an operator's command, which nothing waits for: it has its turn also while the service is overloaded. */
export const COMMAND_TIMEOUT_MS = 60_000;

/**
 * Connects to MongoDB. Writes are acknowledged by the journals of a majority. All reads go to the primary, whatever the
 * URI says: they decide on payments, revoked keys and members, and a secondary may lag behind.
 */
export function connectMongo(
  uri: string,
  timeoutMs = MONGODB_TIMEOUT_MS,
): Promise<{ mongo: MongoClient; db: Db }> {
  return connected(uri, {
    connectTimeoutMS: timeoutMs,
    socketTimeoutMS: timeoutMs,
    waitQueueTimeoutMS: timeoutMs,
  });
}

/**
 * Runs work without operation timeouts, on connections of its own that are closed afterwards. Building an index of
 * millions of records takes minutes; a service that gave up on it would never start.
 */
export async function withoutTimeLimits<T>(uri: string, work: (db: Db) => Promise<T>): Promise<T> {
  const { db, mongo } = await connected(uri, {});
  try {
    return await work(db);
  } finally {
    await mongo.close();
  }
}

async function connected(uri: string, limits: MongoClientOptions): Promise<{ mongo: MongoClient; db: Db }> {
  const mongo = new MongoClient(uri, {
    ...limits,
    serverSelectionTimeoutMS: MONGODB_TIMEOUT_MS,
    writeConcern: { w: "majority", journal: true },
    readPreference: "primary",
    ignoreUndefined: false,
  });
  await mongo.connect();
  return { mongo, db: mongo.db(databaseIn(uri, mongo)) };
}

/** Returns the database's name. Without a name in the URI the driver would use `test`. */
const databaseIn = (uri: string, mongo: MongoClient): string =>
  /^[a-z+]+:\/\/[^/?]*\/[^?]/.test(uri) ? mongo.options.dbName : DATABASE;

/** Connects as `connectMongo`. Throws `EngineUnreachable`, also for a MongoDB that the service can't work on. */
export async function reachMongodb(uri: string, timeoutMs?: number): ReturnType<typeof connectMongo> {
  let connection: Awaited<ReturnType<typeof connectMongo>> | null = null;
  try {
    connection = await connectMongo(uri, timeoutMs);
    await refuseUnusable(connection.db);
    return connection;
  } catch (error) {
    await connection?.mongo.close();
    if (error instanceof EngineUnreachable) throw error;
    const reason = isUninitiated(error)
      ? `its replica set has no members yet. ${INITIATE}`
      : firstLineOf(error);
    throw new EngineUnreachable(`MongoDB is not reachable (MONGODB_URI): ${reason}`, { cause: error });
  }
}

const INITIATE = "Run `rs.initiate()` in mongosh on one member.";

/**
 * Throws for a standalone server, since transactions, change streams and majority writes need a replica set, and for a
 * secondary, which only a direct connection reaches.
 */
async function refuseUnusable(db: Db): Promise<void> {
  const { isWritablePrimary, msg, setName } = await db.command({ hello: 1 });
  if (setName === undefined && msg !== "isdbgrid") {
    throw new EngineUnreachable(
      `MONGODB_URI: a standalone MongoDB has no transactions; start mongod with \`--replSet rs0\`. ${INITIATE}`,
    );
  }
  if (isWritablePrimary === false) {
    throw new EngineUnreachable(
      "MONGODB_URI: it leads to a secondary, which takes no writes; leave `directConnection` out and name the replica set's members.",
    );
  }
}

/**
 * Runs work that needs the rights of the service's database user; throws `EngineUnreachable` if the user lacks them.
 */
export async function withRights<T>({ databaseName }: Db, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MongoServerError && error.code === UNAUTHORIZED)) throw error;
    throw new EngineUnreachable(
      `MONGODB_URI: its user lacks rights on ${databaseName}; run \`db.grantRolesToUser("<user>", [{ role: "readWrite", db: "${databaseName}" }])\` in mongosh.`,
      { cause: error },
    );
  }
}

/** Whether the members of the replica set wait for `rs.initiate()`; the driver selects no such server. */
const isUninitiated = (error: unknown): boolean =>
  error instanceof MongoServerSelectionError &&
  [...(error.reason?.servers.values() ?? [])].some(({ type }) => type === "RSGhost");

export async function connect(
  addresses: Addresses,
  payloads: TemporalPayloads,
  mongodbTimeoutMs?: number,
): Promise<Connections> {
  const { mongo, db } = await reachMongodb(addresses.mongodbUri, mongodbTimeoutMs);
  const security = addresses.readTemporalSecurity?.() ?? null;
  const link = await connectTemporal(addresses.temporalAddress, security).catch(async (error: unknown) => {
    await mongo.close();
    throw error;
  });
  const temporal = new Client({
    connection: link.connection,
    namespace: addresses.temporalNamespace,
    ...payloads.client,
    // Rejects queries to a closed workflow: an actor that has ended would answer with its last state.
    workflow: { queryRejectCondition: "NOT_OPEN" },
  });
  return {
    db,
    mongo,
    temporal,
    temporalOperator: link.connection.operatorService,
    payloads,
    temporalSecurity: security,
    renewTemporal: link.renew,
    addresses,
    async close() {
      await link.close();
      await mongo.close();
    },
  };
}
