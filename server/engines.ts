import { EngineError } from "../src/engines/errors.ts";
import { enginePorts } from "../src/engines/ports.ts";
import { removeRuntimeFile, writeRuntimeFile } from "../src/engines/runtime-file.ts";
import { type RunningEngines, startEngines } from "../src/engines/start.ts";
import { loadTemporalDevConfig } from "../src/engines/temporal-config.ts";
import { type Config, readAddresses, readCardNetworkUrl, readTaskQueue } from "./config.ts";
import type { Addresses } from "../src/store/connections.ts";
import type { Logger } from "../src/lib/logger.ts";
import { readTemporal } from "./temporal-settings.ts";

export interface EnginesOptions {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly logger: Logger;
  readonly onProgress: (line: string) => void;
  /** Aborts the start. */
  readonly signal: AbortSignal;
  /** Called when an engine has failed permanently. */
  readonly onFailed: (error: Error) => void;
}

export interface EnginesInUse {
  readonly addresses: Addresses;
  readonly temporalUiUrl: string | null;
  /** Address of the embedded test chain, for people and their programs; null for an external chain. */
  readonly chainUrl: string | null;
  /** Simulated card network, for trials; null without one. */
  readonly cardNetworkUrl: string | null;
  /** Whether MongoDB is embedded, so that the master key may be stored beside it. */
  readonly ownMongodb: boolean;
  /** Writes the running parts to `runtime.json`, for the admin command. Called once everything runs. */
  announce(): Promise<void>;
  stop(): Promise<void>;
}

export const externalEngines = (env: NodeJS.ProcessEnv): EnginesInUse => ({
  addresses: readAddresses(env),
  temporalUiUrl: null,
  chainUrl: null,
  cardNetworkUrl: readCardNetworkUrl(env),
  ownMongodb: false,
  announce: () => Promise.resolve(),
  stop: () => Promise.resolve(),
});

/** Starts embedded engines for the all-in-one role, except those that the environment names. */
export async function embeddedEngines(options: EnginesOptions): Promise<EnginesInUse> {
  const { baseUrl, config, env, logger, mcpUrl, onFailed, onProgress, signal } = options;
  const startedAt = new Date().toISOString();
  let announced = false;
  const engines = await startEngines({
    dataDir: config.dataDir,
    env,
    ports: enginePorts(env, await loadTemporalDevConfig()),
    onProgress,
    signal,
    onUnexpectedExit(engine, detail, fatal) {
      logger.error({ engine, detail, fatal }, "an engine ended unexpectedly");
      if (fatal) onFailed(new EngineError("START_FAILED", `${engine} keeps ending: ${detail}`));
    },
    onRestarted(engine, pid) {
      logger.warn({ engine, enginePid: pid }, "an engine was started again");
      if (announced) void announce();
    },
  });
  for (const [engine, pid] of pidsOf(engines)) {
    logger.info(
      { engine, enginePid: pid },
      pid === null ? "an engine from the environment is used" : "an engine runs",
    );
  }
  const announce = async (): Promise<void> => {
    announced = true;
    const { chain, mongodb, temporal } = engines;
    await writeRuntimeFile(config.dataDir, {
      pid: process.pid,
      startedAt,
      baseUrl,
      mcpUrl,
      mongodb: { uri: mongodb.uri, pid: mongodb.pid },
      temporal: {
        address: temporal.address,
        namespace: temporal.namespace,
        uiUrl: temporal.uiUrl,
        pid: temporal.pid,
      },
      chain: { rpcUrl: chain.embedded ? chain.rpcUrl : null, pid: chain.pid },
    });
  };
  return {
    addresses: {
      mongodbUri: engines.mongodb.uri,
      temporalAddress: engines.temporal.address,
      temporalNamespace: engines.temporal.namespace,
      readTemporalSecurity: engines.temporal.pid === null ? readTemporal(env).readSecurity : null,
      taskQueue: readTaskQueue(env),
      evmRpcUrl: engines.chain.directUrl,
    },
    temporalUiUrl: engines.temporal.uiUrl,
    chainUrl: engines.chain.embedded ? engines.chain.rpcUrl : null,
    cardNetworkUrl: engines.cardNetwork?.url ?? null,
    ownMongodb: engines.mongodb.pid !== null,
    announce,
    async stop() {
      announced = false;
      await removeRuntimeFile(config.dataDir);
      await engines.stop();
      logger.info("the engines have stopped");
    },
  };
}

/** Returns process ids by the names that the supervisor uses. */
const pidsOf = ({ cardNetwork, chain, mongodb, temporal }: RunningEngines) =>
  [
    ["mongod", mongodb.pid],
    ["temporal", temporal.pid],
    ["anvil", chain.pid],
    ...(cardNetwork === null ? [] : [["card-network", cardNetwork.pid] as const]),
  ] as const;
