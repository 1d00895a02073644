import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MONGOD } from "../../src/engines/mongod-binary.ts";
import { makeMongodbAccess, mongodbFolder, mongodbSpec, mongodbUri } from "../../src/engines/mongodb.ts";
import { choosePorts, LOOPBACK } from "../../src/engines/ports.ts";
import { type Engine as EngineKind, resolveContext, resolveEngine } from "../../src/engines/resolver.ts";
import { type EngineSpec, Supervisor } from "../../src/engines/supervisor.ts";
import { TEMPORAL } from "../../src/engines/temporal-binary.ts";
import { loadTemporalDevConfig } from "../../src/engines/temporal-config.ts";
import { prepareTemporalDatabase, temporalDatabase, temporalSpec } from "../../src/engines/temporal.ts";

/** An engine of the test's own, to be frozen, thawed, killed and brought back. Only its own process is signalled. */
export class OwnEngine {
  readonly #spec: EngineSpec;
  #supervisor: Supervisor | null = null;

  constructor(spec: EngineSpec) {
    this.#spec = spec;
  }

  async start(): Promise<void> {
    this.#supervisor = await Supervisor.start(this.#spec, {
      onUnexpectedExit: () => undefined,
      onRestarted: () => undefined,
    });
  }

  /** It holds its connections and answers nothing. */
  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  /** Killed hard, and it stays away until it is started. */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.stop();
  }

  async stop(): Promise<void> {
    await this.#supervisor?.stop();
    this.#supervisor = null;
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.#supervisor?.pid ?? null;
    if (pid === null) throw new Error(`${this.#spec.name} does not run`);
    process.kill(pid, signal);
  }
}

export interface OwnEngines {
  readonly mongodb: OwnEngine;
  readonly temporal: OwnEngine;
  /** Names them for a service. */
  readonly env: NodeJS.ProcessEnv;
  /** Where Temporal keeps everything, in one file. */
  readonly temporalDatabase: string;
  stop(): Promise<void>;
}

export async function binaryOf<A>(engine: EngineKind<A>): Promise<string> {
  const { MONGODB_URI: _mongodb, TEMPORAL_ADDRESS: _temporal, ...env } = process.env;
  const found = await resolveEngine(
    engine,
    resolveContext(env, () => undefined),
  );
  if (found.kind === "address") throw new Error("an engine of its own has a binary");
  return found.path;
}

/** A mongod and a Temporal dev server on free ports and a folder of their own. */
export async function ownEngines(): Promise<OwnEngines> {
  const dataDir = await mkdtemp(join(tmpdir(), "spending-control-outage-"));
  const config = await loadTemporalDevConfig();
  const any = { port: 0, variable: "PORT" };
  const ports = await choosePorts({ mongodb: any, temporal: any });
  const { env } = process;
  const database = temporalDatabase(dataDir, config);
  await Promise.all([
    mkdir(mongodbFolder(dataDir), { recursive: true }),
    mkdir(join(dataDir, "logs")),
    prepareTemporalDatabase(database),
  ]);
  const access = await makeMongodbAccess(dataDir);
  const mongodb = new OwnEngine(
    mongodbSpec({
      binary: await binaryOf(MONGOD),
      access,
      dataDir,
      env,
      port: ports.mongodb,
      logFile: join(dataDir, "logs", "mongod.log"),
    }),
  );
  const temporal = new OwnEngine(
    temporalSpec({
      binary: await binaryOf(TEMPORAL),
      database,
      env,
      config,
      port: ports.temporal,
      ui: null,
      logFile: join(dataDir, "logs", "temporal.log"),
    }),
  );
  await Promise.all([mongodb.start(), temporal.start()]);
  const uri = new URL(mongodbUri(ports.mongodb, access));
  uri.pathname = "/outage";
  return {
    mongodb,
    temporal,
    temporalDatabase: database,
    env: {
      MONGODB_URI: uri.toString(),
      TEMPORAL_ADDRESS: `${LOOPBACK}:${ports.temporal}`,
      TEMPORAL_NAMESPACE: config.namespace.name,
      MASTER_KEY: randomBytes(32).toString("base64url"),
      AUDIT_ANCHOR_FILE: join(dataDir, "audit-anchors.jsonl"),
      PORT: "0",
    },
    async stop() {
      await Promise.all([mongodb.stop(), temporal.stop()]);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
