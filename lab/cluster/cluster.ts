import { randomBytes, randomInt } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createTestClient, http } from "viem";
import { prepare } from "../../server/admin/prepare.ts";
import { rollOut } from "../../server/admin/roll-out.ts";
import { choosePorts, LOOPBACK } from "../../src/engines/ports.ts";
import { type RunningEngines, startEngines } from "../../src/engines/start.ts";
import { type ChainProxy, startChainProxy } from "../chaos/chain-proxy.ts";
import { roleEnvironment } from "../chaos/deployment.ts";
import { cleanEnvironment } from "../chaos/engines.ts";
import { Letterbox } from "../chaos/letterbox.ts";
import { type Role, RoleProcess } from "../chaos/role-process.ts";
import type { Addresses, Probe, Site } from "../chaos/site.ts";
import { treeMs } from "../../test/support/processor-time.ts";
import { Clock } from "./clock.ts";
import { Database } from "./database.ts";
import type { Member } from "./member.ts";
import { startProbe } from "./probe.ts";
import { startProxy } from "./proxy.ts";
import { ReplicaSet } from "./replica-set.ts";
import { PRIMARY } from "./table.ts";
import { NODES, startTemporal, type Temporal } from "./temporal.ts";
import { findTools } from "./tools.ts";

const DATABASE = "spending";
const NAMESPACE = "spending";
const WORKERS = 2;
const PATIENCE_MS = 120_000;

type Say = (line: string) => void;

/** Engines of a cluster, and the parts of its world that no event touches. */
interface Engines {
  readonly set: ReplicaSet;
  readonly database: Database;
  readonly temporal: Temporal;
  readonly proxy: Member;
  readonly chain: RunningEngines;
  readonly line: ChainProxy;
  readonly letterbox: Letterbox;
  readonly clock: Clock;
}

const sumOfMs = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + treeMs(pid), 0);

export async function renewInTurn(roles: readonly RoleProcess[]): Promise<void> {
  for (const role of roles) await role.renew();
}

/** Two servers and two workers on engines as companies run them, all on loopback. */
export class Cluster implements Site {
  readonly addresses: Addresses;
  readonly baseUrls: readonly string[];
  readonly letterbox: Letterbox;
  readonly line: ChainProxy;
  readonly set: ReplicaSet;
  readonly database: Database;
  readonly temporal: readonly Member[];
  readonly servers: readonly RoleProcess[];
  #workers: readonly RoleProcess[] = [];
  readonly #engines: Engines;
  readonly clock: Clock;
  /** Folder of all data. */
  readonly folder: string;
  readonly #logDir: string;
  readonly #settings: NodeJS.ProcessEnv;
  /** Settings of the master keys once they are rotated. */
  #masterKeys: NodeJS.ProcessEnv = {};
  readonly #gone: string[] = [];
  #builds = 0;

  private constructor(
    engines: Engines,
    place: {
      readonly ports: { readonly http: number; readonly temporal: number };
      readonly servers: readonly number[];
      readonly dataDir: string;
      readonly logDir: string;
    },
  ) {
    const { chain, clock, database, letterbox, line, set, temporal } = engines;
    const { dataDir, logDir, ports, servers } = place;
    const temporalAddress = `${LOOPBACK}:${String(ports.temporal)}`;
    this.#engines = engines;
    this.#logDir = logDir;
    this.clock = clock;
    this.folder = dataDir;
    this.database = database;
    this.letterbox = letterbox;
    this.line = line;
    this.set = set;
    this.temporal = temporal.members;
    this.baseUrls = [`http://${LOOPBACK}:${String(ports.http)}`];
    this.addresses = {
      mongodbUri: set.uri("root", DATABASE),
      temporalAddress,
      temporalNamespace: NAMESPACE,
      rpcUrl: chain.chain.directUrl,
    };
    this.#settings = {
      ...roleEnvironment({ ...this.addresses, rpcUrl: line.url }, { letterbox, logDir }),
      ...temporal.settings,
      MONGODB_URI: set.uri("service", DATABASE),
      BASE_URL: this.baseUrls[0],
      TRUSTED_PROXIES: `${LOOPBACK}/32`,
      INTERNAL_URL: `http://${LOOPBACK}:0`,
      METRICS_PORT: "0",
    };
    this.servers = servers.map((port, index) =>
      this.#role("server", `server-${String(index + 1)}`, { PORT: String(port) }),
    );
  }

  static async start(dataDir: string, say: Say): Promise<Cluster> {
    const env = cleanEnvironment();
    const tools = await findTools(env, say);
    const clock = new Clock();
    const logDir = join(dataDir, "logs");
    await mkdir(logDir, { recursive: true });
    const ports = await freePorts();
    const undo: (() => Promise<unknown>)[] = [];
    const up = async <T extends { stop(): Promise<unknown> }>(what: string, start: () => Promise<T>) => {
      say(`${what}: starting`);
      const started = await start();
      undo.push(() => started.stop());
      return started;
    };
    try {
      const mongods = { binary: tools.mongod, dataDir, ports: [ports.mongod1, ports.mongod2, ports.mongod3] };
      const set = await up("three mongod", () => ReplicaSet.start({ ...mongods, env }, DATABASE));
      const password = randomBytes(24).toString("hex");
      const postgres = { tools, dataDir, port: ports.postgres, password, env };
      const database = await up("postgresql", () => Database.start(postgres));
      const servers = [ports.server1, ports.server2];
      const frontends = NODES.map((host) => `${host}:${String(ports.frontend)}`);
      const proxied = { binary: tools.haproxy, dataDir, env, ports, servers, frontends };
      const proxy = await up("haproxy", () => startProxy(proxied));
      say("two nodes of temporal: starting");
      const address = `${LOOPBACK}:${String(ports.temporal)}`;
      const nodes = {
        tools,
        dataDir,
        databasePort: ports.postgres,
        password,
        ports,
        proxied: address,
        env,
        clock,
      };
      const temporal = await startTemporal(nodes);
      for (const node of temporal.members) undo.push(() => node.stop());
      const chain = await up("chain", () =>
        startEngines({
          dataDir: join(dataDir, "chain"),
          env: {
            ...env,
            MONGODB_URI: set.uri("service", DATABASE),
            TEMPORAL_ADDRESS: address,
            TEMPORAL_NAMESPACE: NAMESPACE,
          },
          ports: { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 },
          onProgress: () => undefined,
          onUnexpectedExit: () => undefined,
        }),
      );
      const line = await startChainProxy(chain.chain.directUrl);
      const letterbox = await Letterbox.open();
      const engines = { set, database, temporal, proxy, chain, line, letterbox, clock };
      const cluster = new Cluster(engines, { ports, servers, dataDir, logDir });
      undo.push(() => cluster.#stopRoles());
      say("namespace, search attributes, indexes: `admin prepare`");
      await prepare(cluster.env);
      say("two servers, two workers: starting");
      for (const server of cluster.servers) server.start();
      await Promise.all([cluster.replaceWorkers(), ...cluster.servers.map((server) => server.ready())]);
      return cluster;
    } catch (error) {
      for (const step of undo.toReversed()) await step().catch(() => undefined);
      throw error;
    }
  }

  get env(): NodeJS.ProcessEnv {
    return { ...this.#settings, ...this.#masterKeys };
  }

  get workers(): readonly RoleProcess[] {
    return this.#workers;
  }

  get roles(): readonly RoleProcess[] {
    return [...this.servers, ...this.#workers];
  }

  get endings(): readonly string[] {
    return [...this.#gone, ...this.roles.flatMap(({ endings }) => endings)];
  }

  get fatal(): string | null {
    const { database, set, temporal } = this;
    return (
      [set, database, this.#engines.proxy, ...temporal].find(({ fatal }) => fatal !== null)?.fatal ?? null
    );
  }

  processorMs(): Readonly<Record<string, number>> {
    const { database, servers, set, temporal } = this;
    return {
      servers: sumOfMs(servers.map(({ pid }) => pid)),
      workers: sumOfMs(this.#workers.map(({ pid }) => pid)),
      Temporal: sumOfMs(temporal.map(({ pid }) => pid)),
      PostgreSQL: treeMs(database.pid),
      // The first member is preferred where it is up.
      [PRIMARY]: treeMs(set.first.pid),
      "MongoDB, others": sumOfMs(set.pids.filter((pid) => pid !== set.first.pid)),
      haproxy: treeMs(this.#engines.proxy.pid),
    };
  }

  probe(): Promise<Probe> {
    return startProbe(this.addresses, this.env);
  }

  /** Starts workers of a new build beside the old ones, gives them all tasks, and ends the old ones. */
  async replaceWorkers(): Promise<void> {
    this.#builds += 1;
    const buildId = `build-${String(this.#builds)}`;
    const old = this.#workers;
    const names = Array.from({ length: WORKERS }, (_none, index) => `worker-${String(index + 1)}`);
    const next = names.map((name) =>
      this.#role("worker", `${name}-${buildId}`, { WORKER_BUILD_ID: buildId }),
    );
    this.#workers = [...old, ...next];
    for (const worker of next) worker.start();
    await Promise.all(next.map((worker) => worker.ready()));
    await rollOut(this.env, {
      buildId,
      percentage: null,
      patienceMs: PATIENCE_MS,
      onProgress: () => undefined,
    });
    for (const worker of old) await worker.stop("SIGTERM");
    this.#gone.push(...old.flatMap(({ endings }) => endings));
    this.#workers = next;
  }

  /** Restarts servers one by one, and workers, with these master keys. */
  async restartUnder(masterKeys: readonly string[]): Promise<void> {
    this.#masterKeys = { MASTER_KEY: "", MASTER_KEYS: masterKeys.join(" ") };
    await Promise.all([renewInTurn(this.servers), renewInTurn(this.#workers)]);
  }

  /** Sets the date forward while everything is down; the chain's with it. */
  async forward(days: number): Promise<void> {
    this.clock.forward(days);
    const chain = createTestClient({ mode: "anvil", transport: http(this.addresses.rpcUrl) });
    await chain.increaseTime({ seconds: days * 86_400 });
    await chain.mine({ blocks: 1 });
  }

  async stop(): Promise<void> {
    const { chain, database, letterbox, line, proxy, set, temporal } = this.#engines;
    await this.#stopRoles();
    await Promise.all([line.close(), letterbox.close(), chain.stop(), proxy.stop()]);
    await Promise.all(temporal.members.map((node) => node.stop()));
    await Promise.all([database.stop(), set.stop()]);
  }

  async #stopRoles(): Promise<void> {
    await Promise.all(this.roles.map((role) => role.stop()));
  }

  #role(role: Role, name: string, more: NodeJS.ProcessEnv): RoleProcess {
    const settings = (): NodeJS.ProcessEnv => ({ ...this.env, ...more, ...this.clock.ofNode });
    return new RoleProcess({
      name,
      role,
      get env() {
        return settings();
      },
      logDir: this.#logDir,
    });
  }
}

/** Temporal keeps the ports of its ring in 16 bits with a sign, below those that systems give out. */
const TEMPORAL_PORTS = { least: 20_000, most: 32_000 } as const;
const TRIES_MAX = 20;

async function freePorts() {
  const any = { port: 0, variable: "PORT" };
  const ports = await choosePorts({
    mongod1: any,
    mongod2: any,
    mongod3: any,
    postgres: any,
    http: any,
    temporal: any,
  });
  for (let tries = 1; ; tries += 1) {
    const first = randomInt(TEMPORAL_PORTS.least, TEMPORAL_PORTS.most);
    const wish = (offset: number) => ({ port: first + offset, variable: "PORT" });
    try {
      const ofTemporal = await choosePorts({
        frontend: wish(0),
        frontendRing: wish(1),
        history: wish(2),
        historyRing: wish(3),
        matching: wish(4),
        matchingRing: wish(5),
        worker: wish(6),
        workerRing: wish(7),
        // Taken last of all, when others may have been given them.
        server1: wish(8),
        server2: wish(9),
      });
      return { ...ports, ...ofTemporal };
    } catch (error) {
      if (tries === TRIES_MAX) throw error;
    }
  }
}
