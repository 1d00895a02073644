import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { z } from "zod";
import { MONGOD } from "../../src/engines/mongod-binary.ts";
import { choosePorts, LOOPBACK } from "../../src/engines/ports.ts";
import { binaryOf } from "../outage/engines.ts";
import { Api } from "../support/api.ts";
import { Child, until } from "../support/process.ts";
import { isSoak } from "../support/soak.ts";
import { Load, replay } from "./support/load.ts";
import { roleEnvironment, Roles } from "./support/roles.ts";
import { Tenant } from "./support/tenant.ts";

const MEMBERS = ["one", "two", "three"] as const;
type Name = (typeof MEMBERS)[number];
const SET = "soak";
const STATE_MS = 120_000;
const BOOKS_MS = 180_000;
const PAYMENTS = 300;
const CLIENTS = 8;

const status = z.object({ members: z.array(z.object({ name: z.string(), stateStr: z.string() })) });

/** Three mongod of the test's own. */
class ReplicaSet {
  readonly #folder: string;
  readonly #binary: string;
  readonly #ports: Readonly<Record<Name, number>>;
  readonly #running = new Map<Name, Child>();

  private constructor(folder: string, binary: string, ports: Readonly<Record<Name, number>>) {
    this.#folder = folder;
    this.#binary = binary;
    this.#ports = ports;
  }

  static async start(): Promise<ReplicaSet> {
    const any = { port: 0, variable: "PORT" };
    const ports = await choosePorts({ one: any, two: any, three: any });
    const folder = await mkdtemp(join(tmpdir(), "spending-control-replica-set-"));
    const set = new ReplicaSet(folder, await binaryOf(MONGOD), ports);
    for (const name of MEMBERS) await set.startMember(name);
    const members = MEMBERS.map((name, _id) => ({ _id, host: set.#hostOf(name) }));
    await until("the set is initiated", STATE_MS, () =>
      set.#command("one", { replSetInitiate: { _id: SET, members } }),
    );
    await set.primary();
    return set;
  }

  #hostOf(name: Name): string {
    return `${LOOPBACK}:${String(this.#ports[name])}`;
  }

  /** With `first` before the others. */
  uri(first: Name, database: string): string {
    const names = [first, ...MEMBERS.filter((name) => name !== first)];
    return `mongodb://${names.map((name) => this.#hostOf(name)).join(",")}/${database}?replicaSet=${SET}`;
  }

  async startMember(name: Name): Promise<void> {
    const dbpath = join(this.#folder, name);
    await mkdir(dbpath, { recursive: true });
    const args = [
      ["--dbpath", dbpath, "--bind_ip", LOOPBACK, "--port", String(this.#ports[name]), "--nounixsocket"],
      ["--replSet", SET, "--oplogSize", "128", "--wiredTigerCacheSizeGB", "0.25", "--quiet"],
      ["--setParameter", "transactionLifetimeLimitSeconds=10"],
    ].flat();
    this.#running.set(name, Child.spawn(this.#binary, args, process.env));
  }

  async kill(name: Name): Promise<void> {
    await this.#running.get(name)?.end("SIGKILL");
    this.#running.delete(name);
  }

  async #command(name: Name, command: Readonly<Record<string, unknown>>): Promise<unknown> {
    const client = new MongoClient(`mongodb://${this.#hostOf(name)}/?directConnection=true`, {
      serverSelectionTimeoutMS: 2_000,
    });
    try {
      return await client.db("admin").command(command);
    } finally {
      await client.close();
    }
  }

  async #inState(state: string): Promise<readonly Name[]> {
    const [asked = "one"] = this.#running.keys();
    const { members } = status.parse(await this.#command(asked, { replSetGetStatus: 1 }));
    const hosts = members.flatMap(({ name, stateStr }) => (stateStr === state ? [name] : []));
    return MEMBERS.filter((name) => hosts.includes(this.#hostOf(name)));
  }

  primary(): Promise<Name> {
    return until("a primary", STATE_MS, async () => (await this.#inState("PRIMARY"))[0] ?? null);
  }

  async secondaries(count: number): Promise<readonly Name[]> {
    return until(`${String(count)} secondaries`, STATE_MS, async () => {
      const found = await this.#inState("SECONDARY");
      return found.length >= count ? found : null;
    });
  }

  async stepDown(): Promise<void> {
    await this.#command(await this.primary(), { replSetStepDown: 30, secondaryCatchUpPeriodSecs: 10 });
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.values()].map((child) => child.end("SIGKILL")));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** The longest time in which no payment of a load was made, until the answer is called. */
function longestPause(load: Load): () => number {
  let [count, sinceMs, longestMs] = [load.sent.length, performance.now(), 0];
  const look = (): void => {
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
    if (load.sent.length === count) return;
    [count, sinceMs] = [load.sent.length, performance.now()];
  };
  const timer = setInterval(look, 20);
  return () => {
    clearInterval(timer);
    look();
    return Math.round(longestMs);
  };
}

if (isSoak)
  describe("Servers and a worker on three mongod", () => {
    let set: ReplicaSet;
    let roles: Roles;
    before(async () => {
      set = await ReplicaSet.start();
    });
    after(async () => {
      await roles?.stop();
      await set?.stop();
    });

    it("one down at the start, a step-down, a killed primary: each payment is made once", async () => {
      const [down = "one"] = await set.secondaries(2);
      await set.kill(down);
      const env = { ...roleEnvironment(), MONGODB_URI: set.uri(down, "soak") };
      roles = new Roles(env);
      const servers = await Promise.all([roles.startServer(), roles.startServer(), roles.startWorker()]);
      const [{ baseUrl }, other] = servers;
      const tenant = await Tenant.create({ baseUrl, mongodbUri: env.MONGODB_URI, env });
      const budget = { budgetCents: 100_000_000 };
      const agents = await Promise.all([tenant.createAgent(budget), tenant.createAgent(budget)]);
      const load = new Load({
        apiKeys: agents.map(({ apiKey }) => apiKey),
        apis: [new Api(baseUrl), new Api(other.baseUrl)],
        clients: CLIENTS,
        name: "replica-set",
        comeAgain: true,
      });
      await load.untilPaid(PAYMENTS);
      await set.startMember(down);
      await set.secondaries(2);
      const figures: Record<string, number> = {};
      const disturb = async (what: string, by: () => Promise<void>): Promise<void> => {
        const pausedMs = longestPause(load);
        await by();
        await load.untilPaid(PAYMENTS);
        figures[`${what}: longest pause in ms`] = pausedMs();
      };
      await disturb("step-down", () => set.stepDown());
      await set.secondaries(2);
      await disturb("killed primary", async () => set.kill(await set.primary()));
      const sent = await load.stop();
      figures["payments"] = sent.length;
      figures["not answered 201"] = sent.filter(({ status: answered }) => answered !== 201).length;
      process.stdout.write(`  ${JSON.stringify(figures)}\n`);
      await replay(tenant.api, sent);
      await tenant.expectBooksToAgree(BOOKS_MS);
      expect(sent.filter(({ transactionId }) => transactionId === null)).to.have.lengthOf(0);
    });
  });
