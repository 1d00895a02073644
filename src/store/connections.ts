import { Client, Connection } from "@temporalio/client";
import { type Db, MongoClient, type MongoClientOptions } from "mongodb";
import { GrpcRetries } from "../lib/grpc-retries.ts";
import { dataConverter } from "../lib/payload-compression.ts";
import { PlainError } from "../lib/plain-error.ts";

/** Where the engines are. */
export interface Addresses {
  readonly mongodbUri: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  /** Services that share a namespace keep apart by it. */
  readonly taskQueue: string;
  /** The chain's JSON-RPC endpoint; null: the wallet rail is not set up. */
  readonly evmRpcUrl: string | null;
}

export interface Connections {
  readonly db: Db;
  readonly mongo: MongoClient;
  readonly temporal: Client;
  readonly addresses: Addresses;
  close(): Promise<void>;
}

const DATABASE = "agent-spending-control";

/** Bounds on one operation, so that a client is answered within 5 s whatever is down. */
const MONGODB_TIMEOUT_MS = 3_000;

/**
 * Connects to MongoDB. What is acknowledged is in the journal of a majority. Everything is read from the primary, whatever the
 * URI says: payments, revoked keys and members are decided by what is read, and a secondary may not know of them yet.
 */
export function connectMongo(uri: string): Promise<{ mongo: MongoClient; db: Db }> {
  return connected(uri, {
    connectTimeoutMS: MONGODB_TIMEOUT_MS,
    socketTimeoutMS: MONGODB_TIMEOUT_MS,
    waitQueueTimeoutMS: MONGODB_TIMEOUT_MS,
  });
}

/**
 * Does work whose operations may take as long as they need, on connections of its own: to build an index of millions of records takes
 * minutes, and a service that gave up on it would never start. Ends them with the work.
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
  const named = new URL(uri.replace(/^mongodb(\+srv)?:/, "http:")).pathname.slice(1);
  return { mongo, db: mongo.db(named === "" ? DATABASE : named) };
}

/** An engine is not there; the message is one line for a person, without the address's credentials. */
export class EngineUnreachable extends PlainError {
  override readonly name = "EngineUnreachable";
}

async function reach<T>(engine: string, variable: string, connecting: Promise<T>): Promise<T> {
  try {
    return await connecting;
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new EngineUnreachable(`${engine} is not reachable (${variable}): ${reason}`, { cause: error });
  }
}

/** As `connectMongo`; throws `EngineUnreachable`. */
export const reachMongodb = (uri: string): ReturnType<typeof connectMongo> =>
  reach("MongoDB", "MONGODB_URI", connectMongo(uri));

export async function connect(addresses: Addresses): Promise<Connections> {
  const { mongo, db } = await reachMongodb(addresses.mongodbUri);
  const retries = new GrpcRetries();
  const options = { address: addresses.temporalAddress, interceptors: [retries.interceptor] };
  const connection = await reach("Temporal", "TEMPORAL_ADDRESS", Connection.connect(options));
  const temporal = new Client({
    connection,
    namespace: addresses.temporalNamespace,
    dataConverter,
    // An actor that has ended would answer as it was then.
    workflow: { queryRejectCondition: "NOT_OPEN" },
  });
  return {
    db,
    mongo,
    temporal,
    addresses,
    async close() {
      await retries.end();
      await connection.close();
      await mongo.close();
    },
  };
}
