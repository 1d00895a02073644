import { mkdir } from "node:fs/promises";
import path from "node:path";
import { ANVIL } from "./anvil-binary.ts";
import { anvilSpec, LOCAL_CHAIN_ID } from "./anvil.ts";
import { cardNetworkFolder, cardNetworkSpec, isCardNetworkWanted } from "./card-network/engine.ts";
import { ChainSnapshots, SNAPSHOT_INTERVAL_MS } from "./chain-snapshots.ts";
import { chainFolder } from "./chain-state.ts";
import { endOrphans, type HeldDataDir, holdDataDir } from "./data-dir.ts";
import { EngineError, reasonOf } from "./errors.ts";
import { type Guard, guardLoopback, hiddenAddress, type LoopbackAddress, urlOf } from "./loopback-guard.ts";
import { MONGOD } from "./mongod-binary.ts";
import { makeMongodbAccess, mongodbFolder, mongodbSpec, mongodbUri } from "./mongodb.ts";
import { choosePorts, type EnginePorts, LOOPBACK, type PortRequest } from "./ports.ts";
import { type OnProgress, withTicker } from "./progress.ts";
import { resolveContext, resolveEngine, type Resolution } from "./resolver.ts";
import { type EngineSpec, Supervisor } from "./supervisor.ts";
import { TEMPORAL, type TemporalAddress } from "./temporal-binary.ts";
import { loadTemporalDevConfig, type TemporalDevConfig } from "./temporal-config.ts";
import { uiEntrance } from "./temporal-ui.ts";
import { prepareTemporalDatabase, temporalDatabase, temporalSpec } from "./temporal.ts";

/** Maximum attempts to start. A port chosen as free may be taken before the engine listens; another is chosen then. */
const START_ATTEMPTS_MAX = 3;

export interface EngineOptions {
  /** DATA_DIR, created if missing. */
  readonly dataDir: string;
  readonly env: NodeJS.ProcessEnv;
  /** Ports; 0 for any free one. `enginePorts` reads them from the environment and temporal-dev.yaml. */
  readonly ports: EnginePorts;
  readonly onProgress: OnProgress;
  /**
   * Interval at which the local chain's state is saved while blocks are mined, 2 s by default; null disables saving.
   */
  readonly chainSnapshotMs?: number | null;
  /** Aborts the start: engines that are starting are ended; fetched files stay. */
  readonly signal?: AbortSignal;
  /**
   * Called when an engine ended by itself or could not be restarted. Unless `fatal`, it is restarted on the same port
   * and data; if `fatal`, it failed too often and stays down.
   */
  onUnexpectedExit(engine: string, detail: string, fatal: boolean): void;
  /** Called once the engine is usable again, under another pid, so that runtime.json can be rewritten. */
  onRestarted?(engine: string, pid: number): void;
}

export interface RunningEngines {
  /** `pid` is current at each read: null for an external engine, and while the engine is down. */
  /** The address of an embedded mongod contains its password: keep it out of logs and arguments. */
  readonly mongodb: { readonly uri: string; readonly pid: number | null };
  readonly temporal: {
    readonly address: string;
    readonly namespace: string;
    readonly uiUrl: string | null;
    readonly pid: number | null;
  };
  readonly chain: {
    /** Address for people and their programs; for the embedded chain, behind a guard against web pages. */
    readonly rpcUrl: string;
    /** Address of the same chain for the service itself, without the guard. */
    readonly directUrl: string;
    /** Null for an external chain: only the chain itself knows its id. */
    readonly chainId: number | null;
    readonly pid: number | null;
    /** Whether the chain is the embedded test chain. */
    readonly embedded: boolean;
  };
  /** The simulated card network; null if not requested. */
  readonly cardNetwork: { readonly url: string; readonly pid: number | null } | null;
  /** Ends the started engines, Temporal first, MongoDB last, and releases the DATA_DIR. Safe to call twice. */
  readonly stop: () => Promise<void>;
}

interface Startup extends EngineOptions {
  readonly held: HeldDataDir;
  readonly config: TemporalDevConfig;
}

type Wishes = Readonly<Record<string, PortRequest>>;

const mongodbPorts = ({ ports }: EngineOptions) => ({
  port: { port: ports.mongodb, variable: "MONGODB_PORT" },
});

const temporalPorts = ({ ports }: EngineOptions) => ({
  port: { port: ports.temporal, variable: "TEMPORAL_PORT" },
});

const uiPorts = ({ ports }: EngineOptions) => ({
  uiPort: { port: ports.temporalUi, variable: "TEMPORAL_UI_PORT" },
});

const hasUi = ({ env }: EngineOptions): boolean => env["TEMPORAL_UI"] !== "false";

const chainPorts = ({ ports }: EngineOptions) => ({
  port: { port: ports.chain, variable: "CHAIN_PORT" },
});

const cardNetworkPorts = ({ ports }: EngineOptions) => ({
  port: { port: ports.cardNetwork ?? 0, variable: "CARD_NETWORK_PORT" },
});

/** Reports taken ports before anything is fetched or started, rather than minutes later. */
async function assertPortsFree(options: EngineOptions): Promise<void> {
  const wishes: Wishes = {
    ...(MONGOD.address(options.env) === null ? { mongodb: mongodbPorts(options).port } : {}),
    ...(TEMPORAL.address(options.env) === null ? temporalPorts(options) : {}),
    ...(TEMPORAL.address(options.env) === null && hasUi(options) ? uiPorts(options) : {}),
    ...(ANVIL.address(options.env) === null ? { chain: chainPorts(options).port } : {}),
    ...(isCardNetworkWanted(options.env) ? { cardNetwork: cardNetworkPorts(options).port } : {}),
  };
  await choosePorts(wishes);
}

type Supervised = Pick<Supervisor, "pid" | "stop">;

type Started<T> = T & { readonly supervisor: Supervised | null };

async function supervise(startup: Startup, spec: EngineSpec): Promise<Supervisor> {
  const supervisor = await withTicker(startup.onProgress, `${spec.name}: starting`, () =>
    Supervisor.start(
      spec,
      {
        onUnexpectedExit: (detail, fatal) => {
          startup.onUnexpectedExit(spec.name, detail, fatal);
        },
        onRestarted: (pid) => startup.onRestarted?.(spec.name, pid),
      },
      startup.signal,
    ),
  );
  startup.onProgress(`${spec.name}: running (process ${String(supervisor.pid)})`);
  return supervisor;
}

/** Retries only if a port was taken between choosing and listening. */
async function untilPortsHold<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      const snatched = error instanceof EngineError && /address already in use/i.test(error.message);
      if (!snatched || tries >= START_ATTEMPTS_MAX) throw error;
    }
  }
}

const logIn = (startup: Startup, name: string): string => path.join(startup.held.path, "logs", `${name}.log`);

async function startMongodb(
  startup: Startup,
  from: Resolution<string>,
): Promise<Started<{ readonly uri: string }>> {
  if (from.kind === "address") return { uri: from.address, supervisor: null };
  const dataDir = startup.held.path;
  await mkdir(mongodbFolder(dataDir), { recursive: true, mode: 0o700 });
  const access = await makeMongodbAccess(dataDir);
  return untilPortsHold(async () => {
    const { port } = await choosePorts(mongodbPorts(startup));
    const logFile = logIn(startup, "mongod");
    const spec = mongodbSpec({ binary: from.path, dataDir, port, access, logFile, env: startup.env });
    return { uri: mongodbUri(port, access), supervisor: await supervise(startup, spec) };
  });
}

type TemporalInfo = TemporalAddress & { readonly uiUrl: string | null };

async function startTemporal(
  startup: Startup,
  from: Resolution<TemporalAddress>,
): Promise<Started<TemporalInfo>> {
  if (from.kind === "address") return { ...from.address, uiUrl: null, supervisor: null };
  const { config, env } = startup;
  const database = temporalDatabase(startup.held.path, config);
  await prepareTemporalDatabase(database);
  const engine = await untilPortsHold(async () => {
    const { port } = await choosePorts(temporalPorts(startup));
    const ui = hasUi(startup) ? await hiddenAddress() : null;
    const logFile = logIn(startup, "temporal");
    const spec = temporalSpec({ binary: from.path, database, port, ui, logFile, env, config });
    return { port, ui, supervisor: await supervise(startup, spec) };
  });
  const { port, supervisor, ui } = engine;
  const guard = ui === null ? null : await guarded(supervisor, () => guardUi(startup, ui));
  return {
    address: `${LOOPBACK}:${String(port)}`,
    namespace: config.namespace.name,
    uiUrl: guard?.url ?? null,
    supervisor: guard === null ? supervisor : withGuard(supervisor, guard),
  };
}

const guardUi = (startup: Startup, ui: LoopbackAddress): Promise<Guard> =>
  untilPortsHold(async () => {
    const { uiPort } = await choosePorts(uiPorts(startup));
    return guardLoopback(uiPort, ui, {
      audience: "pages",
      entrance: uiEntrance(startup.config.namespace.name),
    });
  });

/** Runs the steps after an engine's start; if they fail, the engine is stopped. */
async function guarded<T>(supervisor: Supervised, work: () => Promise<T>): Promise<T> {
  return work().catch(async (error: unknown) => {
    await supervisor.stop();
    throw error;
  });
}

const withGuard = (supervisor: Supervised, guard: Guard): Supervised => ({
  get pid() {
    return supervisor.pid;
  },
  async stop() {
    await guard.stop();
    await supervisor.stop();
  },
});

async function startChain(
  startup: Startup,
  from: Resolution<string>,
): Promise<Started<Pick<RunningEngines["chain"], "rpcUrl" | "directUrl">>> {
  if (from.kind === "address") return { rpcUrl: from.address, directUrl: from.address, supervisor: null };
  const { env, held, onProgress } = startup;
  const engine = await untilPortsHold(async () => {
    const at = await hiddenAddress();
    const logFile = logIn(startup, "anvil");
    const spec = anvilSpec({ binary: from.path, dataDir: held.path, at, logFile, env, onProgress });
    return { at, supervisor: await supervise(startup, spec) };
  });
  const directUrl = urlOf(engine.at);
  const supervisor = await withSnapshots(startup, directUrl, engine.supervisor);
  const guard = await guarded(supervisor, () =>
    untilPortsHold(async () => {
      const { port } = await choosePorts(chainPorts(startup));
      return guardLoopback(port, engine.at, { audience: "api" });
    }),
  );
  return { rpcUrl: guard.url, directUrl, supervisor: withGuard(supervisor, guard) };
}

async function startCardNetwork(startup: Startup): Promise<Started<{ readonly url: string | null }>> {
  if (!isCardNetworkWanted(startup.env)) return { url: null, supervisor: null };
  return untilPortsHold(async () => {
    const { port } = await choosePorts(cardNetworkPorts(startup));
    const { env, held } = startup;
    const spec = cardNetworkSpec({ dataDir: held.path, port, logFile: logIn(startup, "card-network"), env });
    return { url: urlOf({ host: LOOPBACK, port }), supervisor: await supervise(startup, spec) };
  });
}

async function withSnapshots(startup: Startup, rpcUrl: string, supervisor: Supervisor): Promise<Supervised> {
  const { chainSnapshotMs: intervalMs = SNAPSHOT_INTERVAL_MS, held, onProgress } = startup;
  if (intervalMs === null) return supervisor;
  const options = { rpcUrl, folder: chainFolder(held.path), intervalMs, onProgress };
  const snapshots = await guarded(supervisor, () => ChainSnapshots.start(options));
  return {
    get pid() {
      return supervisor.pid;
    },
    async stop() {
      await snapshots.stop();
      await supervisor.stop();
    },
  };
}

type Starting<T> = Promise<Started<T>>;

/**
 * Runs all starts; if one fails, waits for the others and stops them, so that a failed start leaves nothing running.
 */
async function allOrNone<A, B, C, D>(
  starting: readonly [Starting<A>, Starting<B>, Starting<C>, Starting<D>],
): Promise<[Started<A>, Started<B>, Started<C>, Started<D>]> {
  const settled = await Promise.allSettled(starting);
  if (settled.some(({ status }) => status === "rejected")) {
    for (const one of settled) if (one.status === "fulfilled") await one.value.supervisor?.stop();
  }
  return Promise.all(starting);
}

function assertSupported({ env }: EngineOptions): void {
  const addresses = [MONGOD.address(env), TEMPORAL.address(env), ANVIL.address(env)];
  if (process.platform !== "win32" || !addresses.includes(null)) return;
  throw new EngineError(
    "CONFIG",
    "The embedded engines run on Linux and macOS: on Windows set MONGODB_URI, TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and EVM_RPC_URL.",
  );
}

const abortError = (): EngineError => new EngineError("START_FAILED", "The start was aborted.");

/**
 * Waits for work that cannot be cancelled and is harmless if the caller stops waiting. Throws EngineError START_FAILED.
 */
async function unlessAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work;
  const over = new AbortController();
  const givenUp = new Promise<never>((_resolve, reject) => {
    const giveUp = (): void => reject(abortError());
    signal.addEventListener("abort", giveUp, { once: true, signal: over.signal });
    if (signal.aborted) giveUp();
  });
  try {
    return await Promise.race([work, givenUp]);
  } finally {
    over.abort();
  }
}

async function startHeld(options: EngineOptions, held: HeldDataDir): Promise<RunningEngines> {
  const startup: Startup = { ...options, held, config: await loadTemporalDevConfig() };
  const context = resolveContext(options.env, options.onProgress);
  const traces = {
    mongodbFolder: mongodbFolder(held.path),
    temporalDatabase: temporalDatabase(held.path, startup.config),
    chainFolder: chainFolder(held.path),
    cardNetworkFolder: cardNetworkFolder(held.path),
  };
  await endOrphans(traces, options.onProgress);
  await assertPortsFree(options);
  const resolutions = await unlessAborted(
    options.signal,
    Promise.all([
      resolveEngine(MONGOD, context),
      resolveEngine(TEMPORAL, context),
      resolveEngine(ANVIL, context),
    ]),
  );
  const [mongodb, temporal, chain, cardNetwork] = await allOrNone([
    startMongodb(startup, resolutions[0]),
    startTemporal(startup, resolutions[1]),
    startChain(startup, resolutions[2]),
    startCardNetwork(startup),
  ]);
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await temporal.supervisor?.stop();
    await cardNetwork.supervisor?.stop();
    await chain.supervisor?.stop();
    await mongodb.supervisor?.stop();
    await held.release();
  };
  return {
    mongodb: {
      uri: mongodb.uri,
      get pid() {
        return mongodb.supervisor?.pid ?? null;
      },
    },
    temporal: {
      address: temporal.address,
      namespace: temporal.namespace,
      uiUrl: temporal.uiUrl,
      get pid() {
        return temporal.supervisor?.pid ?? null;
      },
    },
    chain: {
      rpcUrl: chain.rpcUrl,
      directUrl: chain.directUrl,
      chainId: chain.supervisor === null ? null : LOCAL_CHAIN_ID,
      get pid() {
        return chain.supervisor?.pid ?? null;
      },
      embedded: chain.supervisor !== null,
    },
    cardNetwork:
      cardNetwork.url === null
        ? null
        : {
            url: cardNetwork.url,
            get pid() {
              return cardNetwork.supervisor?.pid ?? null;
            },
          },
    stop: () => (stopped ??= stop()),
  };
}

/**
 * Starts mongod, the Temporal dev server and the local chain, or uses those that the environment names. When it
 * resolves, mongod is a primary that accepts majority writes and transactions, the Temporal namespace answers with its
 * search attributes, and the chain with its id. All listen only on 127.0.0.1, end with this process even if it is
 * killed, and are restarted when they end by themselves. The DATA_DIR is held until `stop`.
 * Throws EngineError with one line for the operator: a port that is taken, a binary that is broken or unavailable, a
 * DATA_DIR that cannot be written or is in use. Nothing is left running then, nor when `signal` aborts the start.
 */
export async function startEngines(options: EngineOptions): Promise<RunningEngines> {
  assertSupported(options);
  const held = await holdDataDir(options.dataDir);
  try {
    const engines = await startHeld(options, held);
    if (options.signal?.aborted !== true) return engines;
    await engines.stop();
    throw abortError();
  } catch (error) {
    await held.release();
    if (error instanceof EngineError) throw error;
    throw new EngineError("START_FAILED", `The engines could not be started: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}
