import { isGrpcServiceError } from "@temporalio/client";
import { type Db, MongoAPIError, MongoError, MongoServerError } from "mongodb";
import { readLiveRuntimeFile, type RuntimeFile } from "../../src/engines/runtime-file.ts";
import { encryptsPayloads, readAddresses, readConfig, readEvmRpcUrl, readTaskQueue } from "../config.ts";
import {
  type Addresses,
  COMMAND_TIMEOUT_MS,
  connect,
  type Connections,
  reachMongodb,
} from "../../src/store/connections.ts";
import { loadMasterKey } from "../../src/secrets/load-master-key.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";
import { openPayloads } from "../../src/temporal/temporal-payloads.ts";
import { payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import { firstLineOf, PlainError } from "../../src/lib/plain-error.ts";
import { isTemporalNamed, readTemporal } from "../temporal-settings.ts";

/** Why an admin command did nothing, as one line for the operator. */
export class AdminError extends PlainError {
  override readonly name = "AdminError";
}

/** gRPC status codes of a frontend that can't be reached, or has too much to do. */
const [DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE] = [4, 8, 14];
const UNREACHABLE: readonly number[] = [DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE];

/** Returns an engine's failure during a command as one line; other errors are defects and returned unchanged. */
export function plainlyOf(error: unknown): unknown {
  const engine = engineFailedBy(error);
  if (engine === null) return error;
  const reason = isGrpcServiceError(error) ? error.details : firstLineOf(error);
  return new AdminError(`${engine} failed midway: ${reason}; once it answers, run this again.`, {
    cause: error,
  });
}

function engineFailedBy(error: unknown): string | null {
  if (isGrpcServiceError(error))
    return UNREACHABLE.includes(error.code) ? "Temporal (TEMPORAL_ADDRESS)" : null;
  // A server's error without a label is the answer to a wrong command.
  const isDefect =
    error instanceof MongoServerError ? error.errorLabels.length === 0 : error instanceof MongoAPIError;
  return error instanceof MongoError && !isDefect ? "MongoDB (MONGODB_URI)" : null;
}

/** Runs an admin command's work with open connections to the service's engines, and closes them afterwards. */
export async function connected<T>(
  env: NodeJS.ProcessEnv,
  work: (connections: Connections, masterKey: MasterKey) => Promise<T>,
): Promise<T> {
  const addresses = await addressesOf(env);
  const config = readConfig(env, "127.0.0.1");
  const masterKey = await loadMasterKey({
    setting: config.masterKey,
    embeddedDataDir: isEmbedded(env) ? config.dataDir : null,
  });
  const payloads = openPayloads({
    keys: payloadKeysOf(masterKey),
    isEncrypted: encryptsPayloads(config, addresses),
  });
  const connections = await connect(addresses, payloads, COMMAND_TIMEOUT_MS);
  try {
    return await work(connections, masterKey);
  } catch (error) {
    throw plainlyOf(error);
  } finally {
    await connections.close();
  }
}

/** Whether the databases are embedded, so that the master key is in the same directory. */
const isEmbedded = (env: NodeJS.ProcessEnv): boolean => env["MONGODB_URI"] === undefined;

/** Connects to MongoDB only, for a command that needs nothing else. */
export async function connectedToMongo<T>(
  env: NodeJS.ProcessEnv,
  work: (there: { readonly db: Db; readonly evmRpcUrl: string | null }) => Promise<T>,
): Promise<T> {
  const running = isEmbedded(env) ? await runningService(env) : null;
  const uri = running?.mongodb.uri ?? String(env["MONGODB_URI"]);
  const { db, mongo } = await reachMongodb(uri, COMMAND_TIMEOUT_MS);
  try {
    return await work({ db, evmRpcUrl: running?.chain.rpcUrl ?? readEvmRpcUrl(env) });
  } catch (error) {
    throw plainlyOf(error);
  } finally {
    await mongo.close();
  }
}

async function runningService(env: NodeJS.ProcessEnv): Promise<RuntimeFile> {
  const { dataDir } = readConfig(env, "127.0.0.1");
  const running = await readLiveRuntimeFile(dataDir);
  if (running !== null) return running;
  throw new AdminError(
    `No service runs on ${dataDir}; start it with \`npm start\`, or set DATA_DIR to its folder.`,
  );
}

/** Returns the addresses of the service running on DATA_DIR, or of the engines named by the environment. */
async function addressesOf(env: NodeJS.ProcessEnv): Promise<Addresses> {
  if (!isEmbedded(env) && isTemporalNamed(env)) return readAddresses(env);
  const running = await runningService(env);
  const external = isTemporalNamed(env) ? readTemporal(env) : null;
  const { address, namespace } = external ?? running.temporal;
  return {
    mongodbUri: running.mongodb.uri,
    temporalAddress: address,
    temporalNamespace: namespace,
    readTemporalSecurity: external?.readSecurity ?? null,
    taskQueue: readTaskQueue(env),
    evmRpcUrl: running.chain.rpcUrl ?? readEvmRpcUrl(env),
  };
}
