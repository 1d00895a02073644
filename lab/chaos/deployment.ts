import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type RunningCardNetwork, startCardNetwork } from "../../src/engines/card-network/server.ts";
import { choosePorts } from "../../src/engines/ports.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import { openPayloads } from "../../src/temporal/temporal-payloads.ts";
import { RETENTION_SETTINGS } from "./aging.ts";
import { type ChainProxy, startChainProxy } from "./chain-proxy.ts";
import { cleanEnvironment, Engines } from "./engines.ts";
import { Letterbox } from "./letterbox.ts";
import { type Role, RoleProcess } from "./role-process.ts";
import type { Addresses, Site } from "./site.ts";

/** Master keys of a deployment's roles, each after the one that it may replace; its own, so that nothing of this machine's is met. */
export const CHAOS_KEYS = ["one", "two", "three"].map(
  (name) => `a-master-key-for-chaos-long-enough-to-be-${name}`,
);
const [MASTER_KEY] = CHAOS_KEYS;

/** Reader of a deployment's payloads in Temporal. */
export const CHAOS_PAYLOADS = openPayloads({
  keys: payloadKeysOf(MasterKey.parseAll(CHAOS_KEYS.join(" "), "chaos")),
  isEncrypted: true,
});
const DATABASE = "chaos";
/** Some undecided holds expire within a round. */
const APPROVAL_WINDOW_SECONDS = 6;
/** The window of an agent's create closes within the run, so that an archived agent's actor ends in it. */
const KEY_DELIVERY_WINDOW_SECONDS = 30;

const SERVERS = ["server-1", "server-2"] as const;
const WORKERS = ["worker-1", "worker-2"] as const;

/** Settings of servers and workers that use engines at these addresses. */
export const roleEnvironment = (
  { mongodbUri, rpcUrl, temporalAddress, temporalNamespace }: Addresses,
  { letterbox, logDir }: { readonly letterbox: Letterbox; readonly logDir: string },
): NodeJS.ProcessEnv => ({
  ...cleanEnvironment(),
  ...letterbox.settings,
  ...RETENTION_SETTINGS,
  MONGODB_URI: mongodbUri,
  TEMPORAL_ADDRESS: temporalAddress,
  TEMPORAL_NAMESPACE: temporalNamespace,
  EVM_RPC_URL: rpcUrl,
  MASTER_KEY,
  AUDIT_ANCHOR_FILE: join(logDir, "..", "audit-anchors.jsonl"),
  HOST: "127.0.0.1",
  X402_ALLOW_CIDRS: "127.0.0.0/8",
  LOG_LEVEL: "warn",
  APPROVAL_WINDOW_SECONDS: String(APPROVAL_WINDOW_SECONDS),
  KEY_DELIVERY_WINDOW_SECONDS: String(KEY_DELIVERY_WINDOW_SECONDS),
});

/** A deployment to be killed: engines under supervisors, two servers and two workers as processes, a line to the chain; and a receiver of webhooks, which is not killed. */
export class Deployment implements Site {
  readonly engines: Engines;
  readonly line: ChainProxy;
  readonly letterbox: Letterbox;
  /** Like the receiver, it is not killed. */
  readonly cardNetwork: RunningCardNetwork;
  readonly roles: readonly RoleProcess[];
  readonly env: NodeJS.ProcessEnv;
  /** Of each server; clients go to any. */
  readonly baseUrls: readonly string[];
  readonly addresses: Addresses;

  private constructor(
    engines: Engines,
    line: ChainProxy,
    letterbox: Letterbox,
    cardNetwork: RunningCardNetwork,
    ports: readonly number[],
    logDir: string,
  ) {
    const { chain, mongodb, temporal } = engines.running;
    const uri = new URL(mongodb.uri);
    uri.pathname = `/${DATABASE}`;
    this.engines = engines;
    this.line = line;
    this.letterbox = letterbox;
    this.cardNetwork = cardNetwork;
    this.baseUrls = ports.map((port) => `http://127.0.0.1:${String(port)}`);
    this.addresses = {
      mongodbUri: uri.toString(),
      temporalAddress: temporal.address,
      temporalNamespace: temporal.namespace,
      rpcUrl: chain.directUrl,
    };
    const env = {
      ...roleEnvironment({ ...this.addresses, rpcUrl: line.url }, { letterbox, logDir }),
      // Sessions of one server hold at the other.
      BASE_URL: this.baseUrls[0],
      CARD_NETWORK_URL: cardNetwork.url,
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
    const cardNetwork = await startCardNetwork({ port: 0, folder: null, seed: 1 });
    // The same ports for the whole run: clients know a service by its addresses, whichever processes are behind them.
    const wanted = { port: 0, variable: "PORT" };
    const { first, second } = await choosePorts({ first: wanted, second: wanted });
    const place = new Deployment(engines, line, letterbox, cardNetwork, [first, second], logDir);
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

  /** What no disaster should lead to: a role that ended without being killed. */
  get endings(): readonly string[] {
    return this.roles.flatMap(({ endings }) => endings);
  }

  get fatal(): string | null {
    return this.engines.fatal;
  }

  async stop(): Promise<void> {
    await Promise.all(this.roles.map((role) => role.stop()));
    await this.line.close();
    await this.letterbox.close();
    await this.cardNetwork.close();
    await this.engines.stop();
  }
}
