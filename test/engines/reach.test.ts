import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { request, type RequestOptions } from "node:http";
import path from "node:path";
import { runInNewContext } from "node:vm";
import { Client, Connection } from "@temporalio/client";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { makeMongodbAccess, mongodbFolder, mongodbSpec } from "../../src/engines/mongodb.ts";
import { choosePorts } from "../../src/engines/ports.ts";
import { listProcesses } from "../../src/engines/processes.ts";
import { type RunningEngines, startEngines } from "../../src/engines/start.ts";
import { type EngineSpec, Supervisor } from "../../src/engines/supervisor.ts";
import { loadTemporalDevConfig } from "../../src/engines/temporal-config.ts";
import { uiEntrance } from "../../src/engines/temporal-ui.ts";
import { prepareTemporalDatabase, temporalDatabase, temporalSpec } from "../../src/engines/temporal.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { until } from "../support/process.ts";
import { isSoak, someOrAll } from "../support/soak.ts";
import { engineEnvironment } from "./support/binaries.ts";
import { removeFolder, scratchFolder } from "./support/scratch.ts";

const FETCH_TIMEOUT_MS = 1_800_000;
const ANY_PORT = { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 };
const SELECTION_MS = 10_000;
const SHOWN_MS = 60_000;
/** What another of these tests does not need. */
const NO_TEMPORAL = { TEMPORAL_ADDRESS: "t:1", TEMPORAL_NAMESPACE: "ns" };
const NO_CHAIN = { EVM_RPC_URL: "http://rpc.example" };
/** So long after its launch mongod is killed, in milliseconds: before, while and after it makes its data and account. */
const KILLED_AFTER_MS = [150, 600, 1_200];

const anyPort = async (): Promise<number> =>
  (await choosePorts({ port: { port: 0, variable: "PORT" } })).port;

/** The status of an answer, with its body; 0: the line was cut. `fetch` would not let a test choose the Host. */
function ask(url: string, options: RequestOptions, body = ""): Promise<{ status: number; text: string }> {
  const { hostname, pathname, port } = new URL(url);
  return new Promise((resolve) => {
    const asking = request({ hostname, port, path: pathname, ...options }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    asking.on("upgrade", (answer, socket) => {
      socket.destroy();
      resolve({ status: answer.statusCode ?? 0, text: "" });
    });
    asking.on("error", () => resolve({ status: 0, text: "" }));
    asking.end(body);
  });
}

const inserted = async (uri: string): Promise<string> => {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: SELECTION_MS });
  try {
    await client.db("t").collection("values").insertOne({});
    return "taken";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await client.close();
  }
};

/** Storage of a browser that enters the UI of a namespace. */
const entered = (stored: string | null): unknown => {
  const kept: string[] = [];
  const places: string[] = [];
  const localStorage = {
    getItem: () => stored,
    setItem: (_key: string, value: string) => void kept.push(value),
  };
  const location = { replace: (place: string) => void places.push(place) };
  const [, script = ""] = /<script>([^]*)<\/script>/.exec(uiEntrance("ns")) ?? [];
  runInNewContext(script, { localStorage, location });
  expect(places).to.deep.equal(["/namespaces/ns/workflows"]);
  return JSON.parse(kept[0] ?? "");
};

describe("Who can reach the embedded engines", () => {
  let scratch: string;
  let env: NodeJS.ProcessEnv;
  let running: RunningEngines | null = null;

  const folder = (name: string): string => path.join(scratch, name);
  const start = async (name: string, more: NodeJS.ProcessEnv): Promise<RunningEngines> => {
    running = await startEngines({
      dataDir: folder(name),
      env: { ...env, ...more },
      ports: ANY_PORT,
      onProgress: () => undefined,
      onUnexpectedExit: () => undefined,
    });
    return running;
  };

  before(async function () {
    this.timeout(FETCH_TIMEOUT_MS);
    env = await engineEnvironment();
    scratch = await scratchFolder();
  });
  afterEach(async () => {
    await running?.stop();
    running = null;
  });
  after(() => removeFolder(scratch));

  /** All that the UI needs is Temporal. */
  const others = { MONGODB_URI: "mongodb://db.example", ...NO_CHAIN };

  /** A mongod on a folder, as its spec has it but for what is changed. */
  const ownMongod = async (name: string, change: (spec: EngineSpec) => EngineSpec): Promise<Supervisor> => {
    const dataDir = folder(name);
    // As the service makes it: one that others can look into, with data in it, is refused.
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await mkdir(mongodbFolder(dataDir), { recursive: true });
    await mkdir(path.join(dataDir, "logs"), { recursive: true });
    const access = await makeMongodbAccess(dataDir);
    const binary = env["MONGOD_BINARY"] ?? "";
    const logFile = path.join(dataDir, "logs", "mongod.log");
    const spec = mongodbSpec({ binary, dataDir, port: await anyPort(), access, logFile, env });
    return Supervisor.start(change(spec), {
      onUnexpectedExit: () => undefined,
      onRestarted: () => undefined,
    });
  };

  it("MongoDB takes nothing without its password, and its files are their owner's alone", async () => {
    const { mongodb } = await start("guarded", { ...NO_TEMPORAL, ...NO_CHAIN });
    const { host, password } = new URL(mongodb.uri);
    expect(await inserted(mongodb.uri)).to.equal("taken");
    expect(await inserted(`mongodb://${host}/?replicaSet=rs0`)).to.include("requires authentication");
    const wrong = mongodb.uri.replace(password, "a-wrong-password");
    expect(await inserted(wrong)).to.include("Authentication failed");
    expect((await stat(path.join(folder("guarded"), "mongodb.key"))).mode & 0o777).to.equal(0o600);
    const key = await readFile(path.join(folder("guarded"), "mongodb.key"), "utf8");
    const lines = (await listProcesses()).map(({ commandLine }) => commandLine);
    expect(lines.filter((line) => line.includes(password) || line.includes(key))).to.deep.equal([]);
    const first = mongodb.uri;
    await running?.stop();
    const next = await start("guarded", { ...NO_TEMPORAL, ...NO_CHAIN });
    const old = new URL(next.mongodb.uri);
    old.password = new URL(first).password;
    expect(await inserted(old.toString()), "the password of the start before").to.include("failed");
    expect(await readdir(folder("guarded"))).to.have.members(["lock", "logs", "mongodb", "mongodb.key"]);
  });

  it("MongoDB's data from before there was a password is guarded from the next start on", async () => {
    let port = "";
    const open = await ownMongod("before", (spec) => {
      const at = spec.args.indexOf("--keyFile");
      port = spec.args[spec.args.indexOf("--port") + 1] ?? "";
      const ready: EngineSpec["ready"] = async () => {
        const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`);
        const members = [{ _id: 0, host: `127.0.0.1:${port}` }];
        await client.db("admin").command({ replSetInitiate: { _id: "rs0", members } });
        await client.close();
      };
      return { ...spec, args: spec.args.toSpliced(at, 2), ready };
    });
    expect(await inserted(`mongodb://127.0.0.1:${port}/?replicaSet=rs0`)).to.equal("taken");
    await open.stop();
    const { mongodb } = await start("before", { ...NO_TEMPORAL, ...NO_CHAIN });
    const client = new MongoClient(mongodb.uri, { serverSelectionTimeoutMS: SELECTION_MS });
    expect(await client.db("t").collection("values").countDocuments()).to.equal(1);
    await client.close();
    const { host } = new URL(mongodb.uri);
    expect(await inserted(`mongodb://${host}/?replicaSet=rs0`)).to.include("requires authentication");
  });

  it("MongoDB's first start goes on after kill -9 anywhere in it", async () => {
    for (const afterMs of someOrAll(KILLED_AFTER_MS, 1)) {
      const starting = ownMongod("killed", (spec) => ({
        ...spec,
        async ready(signal) {
          const mongod = (await listProcesses()).find(
            ({ commandLine: line }) =>
              line.startsWith(env["MONGOD_BINARY"] ?? "") && line.includes(folder("killed")),
          );
          if (mongod === undefined) throw new Error("mongod does not run");
          const kill = setTimeout(() => process.kill(mongod.pid, "SIGKILL"), afterMs);
          await spec.ready(signal).finally(() => clearTimeout(kill));
        },
      }));
      await starting.then(
        (survivor) => survivor.stop(),
        () => undefined,
      );
    }
    const { mongodb } = await start("killed", { ...NO_TEMPORAL, ...NO_CHAIN });
    expect(await inserted(mongodb.uri)).to.equal("taken");
  });

  it("a page's plain post to Temporal's HTTP API ends no workflow, and gRPC works", async () => {
    const config = await loadTemporalDevConfig();
    const dataDir = folder("http-api");
    const database = temporalDatabase(dataDir, config);
    await mkdir(path.join(dataDir, "logs"), { recursive: true });
    await prepareTemporalDatabase(database);
    const [port, httpPort] = [await anyPort(), await anyPort()];
    const logFile = path.join(dataDir, "logs", "temporal.log");
    const place = { binary: env["TEMPORAL_CLI"] ?? "", database, port, ui: null, logFile, env, config };
    const spec = temporalSpec(place);
    const server = await Supervisor.start(
      { ...spec, args: [...spec.args, "--http-port", String(httpPort)] },
      { onUnexpectedExit: () => undefined, onRestarted: () => undefined },
    );
    const connection = await Connection.connect({ address: `127.0.0.1:${String(port)}` });
    try {
      const namespace = config.namespace.name;
      const client = new Client({ connection, namespace });
      const handle = await client.workflow.start("any", { taskQueue: "nobody", workflowId: "agent" });
      const url = `http://127.0.0.1:${String(httpPort)}/api/v1/namespaces/${namespace}/workflows/agent/terminate`;
      for (const host of [`127.0.0.1:${String(httpPort)}`, `localhost:${String(httpPort)}`, "evil.example"]) {
        const headers = { host, origin: "http://evil.example", "content-type": "text/plain" };
        expect((await ask(url, { method: "POST", headers }, "{}")).status).to.equal(403);
      }
      expect((await handle.describe()).status.name).to.equal("RUNNING");
    } finally {
      await connection.close();
      await server.stop();
    }
  });

  it("the chain answers programs of this machine, and no web page, by whatever name or socket", async () => {
    const { chain } = await start("chain", { ...NO_TEMPORAL, MONGODB_URI: "mongodb://db.example" });
    const { host, port } = new URL(chain.rpcUrl);
    const json = { "content-type": "application/json" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] });
    const post = (headers: Record<string, string>) => ask(chain.rpcUrl, { method: "POST", headers }, body);
    for (const own of [host, `localhost:${port}`]) {
      expect(await post({ ...json, host: own })).to.deep.include({ status: 200 });
    }
    for (const refused of [
      { ...json, host: `evil.example:${port}` },
      { ...json, host: `127.0.0.1.evil.example:${port}` },
      { ...json, host, origin: "http://evil.example" },
      { ...json, host, origin: "null" },
      { ...json, host, origin: chain.rpcUrl },
      { host, "content-type": "text/plain" },
      { host },
    ]) {
      expect((await post(refused)).status, JSON.stringify(refused)).to.equal(403);
    }
    const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    const headers = { ...upgrade, host, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    expect((await ask(chain.rpcUrl, { headers })).status).to.equal(0);
    if (process.platform === "linux") expect(chain.directUrl).not.to.include("127.0.0.1");
  });

  it("Temporal's UI answers to this machine's names alone, and lists with the service's columns", async function () {
    const { temporal } = await start("ui", others);
    const url = temporal.uiUrl ?? "";
    const { host, port } = new URL(url);
    const api = `${url}/api/v1/namespaces`;
    // Its own line to the server may be a moment behind.
    await until("the UI shows the namespace", SHOWN_MS, async () =>
      (await ask(api, { headers: { host } })).text.includes(temporal.namespace) ? true : null,
    );
    const entrance = await ask(url, { headers: { host: `localhost:${port}` } });
    expect(entrance).to.deep.equal({ status: 200, text: uiEntrance(temporal.namespace) });
    expect((await ask(api, { headers: { host: `evil.example:${port}` } })).status).to.equal(403);
    const headers = { host, origin: "http://evil.example" };
    expect((await ask(api, { method: "POST", headers }, "{}")).status).to.equal(403);

    // The UI of a pinned version; the soak has a browser look at it.
    if (!isSoak) return;
    const browser = await chromiumOrPending(this);
    const page = await browser.newPage();
    await page.goto(url);
    // The header of the list, which is there without a workflow, too.
    await page.waitForSelector("::-p-xpath(//th[contains(., 'OrganizationId')])");
    await page.waitForSelector("::-p-xpath(//th[contains(., 'AgentId')])");
    expect(new URL(page.url()).pathname).to.equal(`/namespaces/${temporal.namespace}/workflows`);
    await page.close();
  });

  it("the UI's entrance gives a browser the service's columns, unless it has chosen its own", () => {
    expect(JSON.stringify(entered(null))).to.include('{"label":"OrganizationId"},{"label":"AgentId"}');
    const own = { ns: [{ label: "Status" }], other: [] };
    expect(entered(JSON.stringify(own))).to.deep.equal(own);
  });
});
