import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Connection } from "@temporalio/client";
import { childEnvironment } from "../../src/engines/environment.ts";
import { LOOPBACK } from "../../src/engines/ports.ts";
import { readTemporal } from "../../server/temporal-settings.ts";
import { newAuthority } from "../../test/support/certificates/authority.ts";
import type { Clock } from "./clock.ts";
import { DATABASE_USER } from "./database.ts";
import { Member } from "./member.ts";
import type { Tools } from "./tools.ts";

const run = promisify(execFile);

/** An address of its own for each node: nodes of a cluster have the same ports. */
export const NODES = ["127.0.0.11", "127.0.0.12"] as const;
/** Name in the certificate of all frontends. */
const SERVER_NAME = "temporal.test";
const SHARDS = 64;
const POLL_MS = 200;
const STOP_GRACE_MS = 15_000;
const DATABASES = { temporal: "temporal", temporal_visibility: "visibility" } as const;

/** Files of the authority, and of an identity that it has issued. */
interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Makes certificates for the frontends, for Temporal's own workers and for the service, which are all each other's clients. */
async function issueCertificates(folder: string): Promise<Certificates> {
  const authority = newAuthority();
  const { cert, key } = authority.issue([SERVER_NAME]);
  const files = { ca: join(folder, "ca.pem"), cert: join(folder, "own.pem"), key: join(folder, "own.key") };
  await writeFile(files.ca, authority.caPem);
  await writeFile(files.cert, cert);
  await writeFile(files.key, key, { mode: 0o600 });
  return files;
}

/** One for each service of Temporal, and one for the members of its ring. */
export interface TemporalPorts {
  readonly frontend: number;
  readonly frontendRing: number;
  readonly history: number;
  readonly historyRing: number;
  readonly matching: number;
  readonly matchingRing: number;
  readonly worker: number;
  readonly workerRing: number;
}

export interface TemporalOptions {
  readonly tools: Tools;
  readonly dataDir: string;
  readonly databasePort: number;
  readonly password: string;
  readonly ports: TemporalPorts;
  /** The address at which the proxy offers the frontends. */
  readonly proxied: string;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
}

export interface Temporal {
  readonly members: readonly Member[];
  /** Settings of a client: the frontends demand its certificate. */
  readonly settings: NodeJS.ProcessEnv;
}

/** Temporal's own server, two processes with all services in each, with the defaults of its dynamic configuration. */
export async function startTemporal(options: TemporalOptions): Promise<Temporal> {
  const { clock, dataDir, env, ports, proxied, tools } = options;
  await makeSchemas(options);
  const folder = join(dataDir, "temporal");
  await mkdir(folder);
  const files = await issueCertificates(folder);
  const settings = {
    TEMPORAL_ADDRESS: proxied,
    TEMPORAL_TLS_SERVER_CA_CERT_PATH: files.ca,
    TEMPORAL_TLS_CLIENT_CERT_PATH: files.cert,
    TEMPORAL_TLS_CLIENT_KEY_PATH: files.key,
    TEMPORAL_TLS_SERVER_NAME: SERVER_NAME,
  };
  const members = NODES.map(async (host, index) => {
    const name = `temporal-${String(index + 1)}`;
    await writeFile(join(folder, `${name}.yaml`), JSON.stringify(configurationOf(host, files, options)));
    return new Member({
      name,
      binary: tools.temporal,
      args: ["--root", dataDir, "--config", "temporal", "--env", name, "--allow-no-auth", "start"],
      get env() {
        return { ...childEnvironment(env), ...clock.ofTemporal };
      },
      logFile: join(dataDir, "logs", `${name}.log`),
      stopGraceMs: STOP_GRACE_MS,
      remedy: "See its log.",
      ready: (signal) =>
        untilServes({ ...settings, TEMPORAL_ADDRESS: `${host}:${String(ports.frontend)}` }, signal),
    });
  });
  const started: Member[] = [];
  try {
    // The first one describes the cluster in the database; two at once would collide there.
    for (const member of await Promise.all(members)) started.push(await member.start());
  } catch (error) {
    await Promise.all(started.map((member) => member.stop()));
    throw error;
  }
  return { members: started, settings };
}

async function makeSchemas({ databasePort, dataDir, env, password, tools }: TemporalOptions): Promise<void> {
  const common = [
    ["--plugin", "postgres12", "--ep", LOOPBACK, "-p", String(databasePort)],
    ["-u", DATABASE_USER, "--pw", password],
  ].flat();
  for (const [database, kind] of Object.entries(DATABASES)) {
    const schema = join(tools.temporalSchemas, kind, "versioned");
    for (const args of [["create"], ["setup-schema", "-v", "0.0"], ["update-schema", "-d", schema]]) {
      const all = [...common, "--db", database, ...args];
      await run(tools.temporalSql, all, { cwd: dataDir, env: childEnvironment(env), maxBuffer: 16_777_216 });
    }
  }
}

function configurationOf(
  host: string,
  files: Certificates,
  { databasePort, password, ports, proxied }: TemporalOptions,
): unknown {
  const store = (databaseName: string, maxConns: number) => ({
    sql: {
      pluginName: "postgres12",
      databaseName,
      connectAddr: `${LOOPBACK}:${String(databasePort)}`,
      connectProtocol: "tcp",
      user: DATABASE_USER,
      password,
      maxConns,
      maxIdleConns: maxConns,
      maxConnLifetime: "1h",
    },
  });
  const service = (grpcPort: number, membershipPort: number) => ({
    rpc: { grpcPort, membershipPort, bindOnIP: host },
  });
  const own = { certFile: files.cert, keyFile: files.key };
  const client = { serverName: SERVER_NAME, rootCaFiles: [files.ca] };
  return {
    log: { stdout: true, level: "warn" },
    persistence: {
      defaultStore: "tables",
      visibilityStore: "visibility",
      numHistoryShards: SHARDS,
      datastores: { tables: store("temporal", 30), visibility: store("temporal_visibility", 10) },
    },
    global: {
      membership: { maxJoinDuration: "30s", broadcastAddress: host },
      tls: {
        frontend: { server: { ...own, requireClientAuth: true, clientCaFiles: [files.ca] }, client },
        systemWorker: { ...own, client },
      },
    },
    publicClient: { hostPort: proxied },
    services: {
      frontend: service(ports.frontend, ports.frontendRing),
      history: service(ports.history, ports.historyRing),
      matching: service(ports.matching, ports.matchingRing),
      worker: service(ports.worker, ports.workerRing),
    },
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: "active",
      currentClusterName: "active",
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: "frontend", rpcAddress: proxied },
      },
    },
    dcRedirectionPolicy: { policy: "noop" },
  };
}

async function untilServes(settings: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
  const { address, readSecurity } = readTemporal(settings);
  let last: unknown;
  while (!signal.aborted) {
    try {
      const { options } = readSecurity();
      const connection = await Connection.connect({ address, connectTimeout: "2 seconds", ...options });
      await connection.close();
      return;
    } catch (error) {
      last = error;
      await sleep(POLL_MS);
    }
  }
  throw new Error("its frontend never answered", { cause: last });
}
