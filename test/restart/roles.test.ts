import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import { Api } from "../support/api.ts";
import { Child, cleanEnvironment } from "../support/process.ts";
import { Load, pay, replay } from "./support/load.ts";
import { Tenant } from "./support/tenant.ts";

const START_MS = 45_000;
const SWEPT_MS = 12_000;
const ANSWERED_MS = 5_500;

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests with \`npm test\``);
  return value;
}

/** A deployment in roles of its own, on the run's engines. */
function environment(): NodeJS.ProcessEnv & { readonly MONGODB_URI: string } {
  const id = `test_${randomBytes(8).toString("hex")}`;
  const uri = new URL(required("TEST_MONGODB_URI"));
  uri.pathname = `/${id}`;
  return {
    ...cleanEnvironment(),
    MONGODB_URI: uri.toString(),
    TEMPORAL_ADDRESS: required("TEST_TEMPORAL_ADDRESS"),
    TEMPORAL_NAMESPACE: required("TEST_TEMPORAL_NAMESPACE"),
    TEMPORAL_TASK_QUEUE: id,
    MASTER_KEY: "a-master-key-for-tests-long-enough-to-be-one",
    KEY_DELIVERY_DIR: join(required("TEST_KEY_DELIVERY_DIR"), id),
    HOST: "127.0.0.1",
    PORT: "0",
    LOG_LEVEL: "error",
  };
}

describe("Servers and workers as processes of their own", function () {
  this.timeout(90_000);
  const env = environment();
  const children: Child[] = [];
  let worker: Child;
  let apis: readonly Api[];
  let tenant: Tenant;

  function run(role: "server" | "worker"): Child {
    const child = Child.node("server/main.ts", [role], env);
    children.push(child);
    return child;
  }

  async function startServer(): Promise<string> {
    const [, baseUrl = ""] = await run("server").printed(/^ +REST +(\S+)\/v1$/m, START_MS);
    return baseUrl;
  }

  async function startWorker(): Promise<Child> {
    const child = run("worker");
    await child.printed(/^The worker is running\.$/m, START_MS);
    return child;
  }

  before(async () => {
    const [baseUrls, started] = await Promise.all([
      Promise.all([startServer(), startServer()]),
      startWorker(),
    ]);
    worker = started;
    apis = baseUrls.map((baseUrl) => new Api(baseUrl));
    tenant = await Tenant.create({ baseUrl: baseUrls[0], mongodbUri: env.MONGODB_URI, env });
  });
  after(async () => {
    await Promise.all(children.map((child) => child.end("SIGKILL")));
  });

  it("two servers at once against one agent: never past its budget, and one payment for one key", async () => {
    const { agent, apiKey } = await tenant.createAgent({ budgetCents: 3_000 });
    const keys = Array.from({ length: 40 }, (_none, index) => `key ${index}`);
    // Each key goes to both servers at the same moment.
    const sent = await Promise.all(keys.flatMap((key) => apis.map((api) => pay(api, apiKey, key, 100))));
    expect(sent.filter(({ transactionId }) => transactionId === null)).to.deep.equal([]);
    expect(new Set(sent.map(({ transactionId }) => transactionId)).size).to.equal(40);
    await tenant.expectTotals(agent.id, { spentCents: 3_000, reservedCents: 0 }, SWEPT_MS);
    await tenant.expectBooksToAgree(SWEPT_MS);
  });

  it("kill -9 of the worker under load: every call is answered, with a payment or 503, a new worker goes on, replays settle", async () => {
    const agents = await Promise.all([tenant.createAgent({ budgetCents: 100_000 }), tenant.createAgent()]);
    const apiKeys = agents.map(({ apiKey }) => apiKey);
    const load = new Load({ apiKeys, apis, clients: 6, name: "worker" });
    await load.untilPaid(40);
    await worker.end("SIGKILL");
    worker = await startWorker();
    await load.untilPaid(40);
    const sent = await load.stop();
    const odd = sent.filter(({ ms, status }) => (status !== 201 && status !== 503) || ms > ANSWERED_MS);
    expect(odd).to.deep.equal([]);
    for (const api of apis) await replay(api, sent);
    await tenant.expectBooksToAgree(SWEPT_MS);
  });

  it("SIGTERM: servers and workers end with 0", async () => {
    const running = children.filter((child) => child.running);
    expect(running).to.have.lengthOf(3);
    const exits = await Promise.all(running.map((child) => child.end("SIGTERM")));
    expect(exits).to.deep.equal(running.map(() => ({ code: 0, signal: null })));
  });
});
