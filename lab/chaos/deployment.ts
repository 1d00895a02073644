import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { choosePorts } from "../../src/engines/ports.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import { openPayloads } from "../../src/temporal/temporal-payloads.ts";
import { RETENTION_SETTINGS } from "./aging.ts";
import { type ChainProxy, startChainProxy } from "./chain-proxy.ts";
import { cleanEnvironment, Engines } from "./engines.ts";
import { Letterbox } from "./letterbox.ts";
import { type Role, RoleProcess } from "./role-process.ts";

/** Settings of a deployment's roles; its own, so that nothing of this machine's is met. */
const MASTER_KEY = "a-master-key-for-chaos-long-enough-to-be-one";

/** Reader of a deployment's payloads in Temporal. */
export const CHAOS_PAYLOADS = openPayloads({
  keys: payloadKeysOf(MasterKey.parse(MASTER_KEY, "chaos")),
  isEncrypted: true,
});
const DATABASE = "chaos";
/** Some undecided holds expire within a round. */
const APPROVAL_WINDOW_SECONDS = 6;
/** The window of an agent's create closes within the run, so that an archived agent's actor ends in it. */
const KEY_DELIVERY_WINDOW_SECONDS = 30;

const SERVERS = ["server-1", "server-2"] as const;
const WORKERS = ["worker-1", "worker-2"] as const;

/** Addresses for reading the books without the service. */
export interface Addresses {
  readonly mongodbUri: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  /** The chain itself, not the line that is disturbed. */
  readonly rpcUrl: string;
}

/** A deployment to be killed: engines under supervisors, two servers and two workers as processes, a line to the chain; and a receiver of webhooks, which is not killed. */
export class Deployment {
  readonly engines: Engines;
  readonly line: ChainProxy;
  readonly letterbox: Letterbox;
  readonly roles: readonly RoleProcess[];
  readonly env: NodeJS.ProcessEnv;
  /** Of each server; clients go to any. */
  readonly baseUrls: readonly string[];
  readonly addresses: Addresses;

  private constructor(
    engines: Engines,
    line: ChainProxy,
    letterbox: Letterbox,
    ports: readonly number[],
    logDir: string,
  ) {
    const { chain, mongodb, temporal } = engines.running;
    const uri = new URL(mongodb.uri);
    uri.pathname = `/${DATABASE}`;
    this.engines = engines;
    this.line = line;
    this.letterbox = letterbox;
    this.baseUrls = ports.map((port) => `http://127.0.0.1:${String(port)}`);
    this.addresses = {
      mongodbUri: uri.toString(),
      temporalAddress: temporal.address,
      temporalNamespace: temporal.namespace,
      rpcUrl: chain.directUrl,
    };
    const env = {
      ...cleanEnvironment(),
      ...letterbox.settings,
      ...RETENTION_SETTINGS,
      MONGODB_URI: this.addresses.mongodbUri,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
      EVM_RPC_URL: line.url,
      MASTER_KEY,
      AUDIT_ANCHOR_FILE: join(logDir, "..", "audit-anchors.jsonl"),
      HOST: "127.0.0.1",
      // Sessions of one server hold at the other.
      BASE_URL: this.baseUrls[0],
      LOG_LEVEL: "warn",
      APPROVAL_WINDOW_SECONDS: String(APPROVAL_WINDOW_SECONDS),
      KEY_DELIVERY_WINDOW_SECONDS: String(KEY_DELIVERY_WINDOW_SECONDS),
    };
    this.env = env;
    this.roles = [
      ...SERVERS.map(
        (name, index) =>
          new RoleProcess({ name, role: "server", env: { ...env, PORT: String(ports[index]) }, logDir }),
      ),
      ...WORKERS.map((name) => new RoleProcess({ name, role: "worker", env, logDir })),
    ];
  }

  static async start(dataDir: string, say: (line: string) => void): Promise<Deployment> {
    const logDir = join(dataDir, "logs");
    await mkdir(logDir, { recursive: true });
    const engines = await Engines.start(dataDir, say);
    const line = await startChainProxy(engines.running.chain.directUrl);
    const letterbox = await Letterbox.open();
    // Ports stay the same for the whole run: clients know a service by its addresses, whichever processes are behind
    // them.
    const wanted = { port: 0, variable: "PORT" };
    const { first, second } = await choosePorts({ first: wanted, second: wanted });
    const place = new Deployment(engines, line, letterbox, [first, second], logDir);
    say("two servers, two workers: starting");
    for (const role of place.roles) role.start();
    try {
      await place.ready();
    } catch (error) {
      await place.stop();
      throw error;
    }
    return place;
  }

  rolesOf(role: Role): readonly RoleProcess[] {
    return this.roles.filter((each) => each.role === role);
  }

  /** Resolves when every role can be used. */
  async ready(): Promise<void> {
    await Promise.all(this.roles.map((role) => role.ready()));
  }

  /** Roles that ended without being killed, which no disaster should cause. */
  get endings(): readonly string[] {
    return this.roles.flatMap(({ endings }) => endings);
  }

  async stop(): Promise<void> {
    await Promise.all(this.roles.map((role) => role.stop()));
    await this.line.close();
    await this.letterbox.close();
    await this.engines.stop();
  }
}
