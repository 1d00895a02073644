import { readLiveRuntimeFile } from "../../src/engines/runtime-file.ts";
import { readAddresses, readConfig, readEvmRpcUrl, readTaskQueue } from "../config.ts";
import { type Addresses, connect, type Connections } from "../connections.ts";

/** Why an admin command did nothing, in a line for the operator. */
export class AdminError extends Error {
  override readonly name = "AdminError";
}

/** Does an admin command's work on the service's engines, and lets go of them. */
export async function connected<T>(
  env: NodeJS.ProcessEnv,
  work: (connections: Connections) => Promise<T>,
): Promise<T> {
  const connections = await connect(await addressesOf(env));
  try {
    return await work(connections);
  } finally {
    await connections.close();
  }
}

/** The service that runs on the DATA_DIR, or the engines that the environment names. */
async function addressesOf(env: NodeJS.ProcessEnv): Promise<Addresses> {
  if (env["MONGODB_URI"] !== undefined && env["TEMPORAL_ADDRESS"] !== undefined) return readAddresses(env);
  const { dataDir } = readConfig(env, "127.0.0.1");
  const running = await readLiveRuntimeFile(dataDir);
  if (running === null) {
    throw new AdminError(
      `No service runs on ${dataDir}; start it with \`npm start\`, or set DATA_DIR to its folder.`,
    );
  }
  return {
    mongodbUri: running.mongodb.uri,
    temporalAddress: running.temporal.address,
    temporalNamespace: running.temporal.namespace,
    taskQueue: readTaskQueue(env),
    evmRpcUrl: running.chain.rpcUrl ?? readEvmRpcUrl(env),
  };
}
