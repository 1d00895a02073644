import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "@temporalio/client";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { z } from "zod";
import { isAlive, listProcesses, waitForEnd } from "../../src/engines/processes.ts";
import { type EngineOptions, type RunningEngines, startEngines } from "../../src/engines/start.ts";
import { builtFile } from "../../src/lib/package-root.ts";
import { engineEnvironment } from "./support/binaries.ts";
import { ChainClient } from "./support/chain.ts";
import { engineErrorOf, removeFolder, scratchFolder, writeScript } from "./support/scratch.ts";

const FETCH_TIMEOUT_MS = 1_800_000;
/** A guardian's bound is 1.5 s; the rest is for a busy machine. */
const ENGINES_GONE_MS = 60_000;
/** Engines that a test of MongoDB does not start. */
const ELSEWHERE = { TEMPORAL_ADDRESS: "t:1", TEMPORAL_NAMESPACE: "ns", EVM_RPC_URL: "http://rpc.example" };
const ANY_PORT = { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 };

async function insert(uri: string, value: string): Promise<void> {
  const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 10_000 });
  try {
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await client.db("t").collection("values").insertOne({ value }, { session });
      }),
    );
  } finally {
    await client.close();
  }
}

async function parameter(uri: string, name: string): Promise<unknown> {
  const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 10_000 });
  try {
    return (await client.db("admin").command({ getParameter: 1, [name]: 1 }))[name];
  } finally {
    await client.close();
  }
}

async function values(uri: string): Promise<readonly unknown[]> {
  const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 10_000 });
  try {
    const found = client.db("t").collection("values").find({}, { readConcern: "majority" });
    return (await found.toArray()).map(({ value }) => value);
  } finally {
    await client.close();
  }
}

/** Holds a port on loopback, as a foreign program would. */
async function occupy(): Promise<{ readonly port: number; readonly server: Server }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return { port: address.port, server };
}

const portOf = (uri: string): number => Number(/:(\d+)(\/|$)/.exec(uri)?.[1]);

describe("The embedded engines", () => {
  let scratch: string;
  let dataDir: string;
  let env: NodeJS.ProcessEnv;
  let events: string[];
  let running: RunningEngines | null = null;

  const start = async (more: Partial<EngineOptions> = {}): Promise<RunningEngines> => {
    running = await startEngines({
      dataDir,
      env,
      ports: ANY_PORT,
      onProgress: () => undefined,
      onUnexpectedExit: (engine, _detail, fatal) => events.push(`${engine} ${fatal ? "failed" : "ended"}`),
      onRestarted: (engine) => events.push(`${engine} restarted`),
      ...more,
    });
    return running;
  };

  before(async function () {
    this.timeout(FETCH_TIMEOUT_MS); // on a fresh machine they are fetched here
    env = await engineEnvironment();
    scratch = await scratchFolder();
    dataDir = path.join(scratch, "data dir");
  });
  beforeEach(() => {
    events = [];
  });
  afterEach(async () => {
    await running?.stop();
    running = null;
  });
  after(() => removeFolder(scratch));

  const mongodbAlone = () => ({ env: { ...env, ...ELSEWHERE } });

  const enginesOnDataDir = async (): Promise<readonly number[]> =>
    (await listProcesses())
      .filter(({ commandLine }) => commandLine.includes(` ${dataDir}/`))
      .map(({ pid }) => pid);

  /** What has been told to end may be ending still, on a busy machine; of what goes on it would never come true. */
  const nothingIsLeft = async (): Promise<void> => {
    let left = await enginesOnDataDir();
    for (let tries = 0; left.length > 0 && tries < 1_200; tries += 1) {
      await sleep(50);
      left = await enginesOnDataDir();
    }
    expect(left).to.deep.equal([]);
  };

  const waitForEvent = async (event: string): Promise<void> => {
    for (let tries = 0; !events.includes(event) && tries < 4_800; tries += 1) await sleep(25);
    expect(events).to.include(event);
  };

  it("take transactions and workflows, on loopback only; killed, they are back with their data", async () => {
    const settings = { TEMPORAL_UI: "false", CARD_ISSUER: "simulator" };
    const { cardNetwork, chain, mongodb, temporal, stop } = await start({ env: { ...env, ...settings } });
    const onCardNetwork = async (method: string, call: string): Promise<unknown> => {
      const headers = { authorization: "Bearer sk_test_1" };
      const body = method === "POST" ? new URLSearchParams({ amount: "7" }) : null;
      const answer = await fetch(`${cardNetwork?.url ?? ""}/v1/${call}`, { method, headers, body });
      return answer.json();
    };
    await onCardNetwork("POST", "topups");
    expect(temporal.uiUrl, "turned off").to.equal(null);
    await insert(mongodb.uri, "first");
    // Else what a killed server had begun holds up all others for a minute.
    expect(await parameter(mongodb.uri, "transactionLifetimeLimitSeconds")).to.equal(10);

    const connection = await Connection.connect({ address: temporal.address });
    const { namespace } = temporal;
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    expect(customAttributes).to.include.keys("AgentId", "TransactionId");
    const described = await connection.workflowService.describeNamespace({ namespace });
    expect(described.config?.workflowExecutionRetentionTtl?.seconds?.toNumber()).to.equal(7 * 86_400);
    await connection.close();

    const outside = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .find((one) => one.family === "IPv4" && !one.internal);
    if (outside !== undefined) {
      for (const port of [
        portOf(mongodb.uri),
        portOf(temporal.address),
        portOf(chain.rpcUrl),
        portOf(cardNetwork?.url ?? ""),
      ]) {
        const refused = await fetch(`http://${outside.address}:${String(port)}`).then(
          () => false,
          () => true,
        );
        expect(refused).to.equal(true);
      }
    }
    expect(events).to.deep.equal([]);

    const [mongod, server] = [mongodb.pid ?? 0, temporal.pid ?? 0];
    for (const pid of [chain.pid ?? 0, cardNetwork?.pid ?? 0, mongod, server]) process.kill(pid, "SIGKILL");
    await Promise.all([
      waitForEvent("mongod restarted"),
      waitForEvent("temporal restarted"),
      waitForEvent("anvil restarted"),
      waitForEvent("card-network restarted"),
    ]);
    expect(await onCardNetwork("GET", "balance")).to.deep.include({
      issuing: { available: [{ amount: 100_000_007, currency: "usd" }] },
    });
    expect(mongodb.pid).not.to.equal(mongod);
    expect(await values(mongodb.uri)).to.deep.equal(["first"]);
    await (await Connection.connect({ address: temporal.address })).close();
    expect(events).to.include.members(["mongod ended", "temporal ended", "anvil ended"]);
    await stop();
    expect(await enginesOnDataDir()).to.deep.equal([]);
  });

  it("end when the service is killed with -9, and the next start goes on with the same data", async () => {
    const ports = { MONGODB_PORT: "0", TEMPORAL_PORT: "0", TEMPORAL_UI_PORT: "0", CHAIN_PORT: "0" };
    const service = spawn(process.execPath, [builtFile("test/engines/support/hold-engines.ts")], {
      env: { ...env, ...ports, DATA_DIR: dataDir },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said = await createInterface({ input: service.stdout })[Symbol.asyncIterator]().next();
    const { uri, rpcUrl, pids } = z
      .object({ uri: z.string(), rpcUrl: z.string(), pids: z.array(z.number()) })
      .parse(JSON.parse(String(said.value)));
    await insert(uri, "second");
    const hash = await new ChainClient(rpcUrl).paid();
    service.kill("SIGKILL");
    await once(service, "exit");
    // the next start does not wait for the engines to be gone
    const next = start();
    for (const pid of pids) expect(await waitForEnd(pid, ENGINES_GONE_MS)).to.equal(true);
    const { chain, mongodb } = await next;
    expect(await values(mongodb.uri)).to.deep.equal(["first", "second"]);
    expect(await new ChainClient(chain.rpcUrl).receipt(hash)).not.to.equal(null);
  });

  it("left without guardian and service are ended by the next start, which refuses a second one", async () => {
    const args = ["--dbpath", `${dataDir}/mongodb`, "--bind_ip", "127.0.0.1", "--port"];
    const free = await occupy();
    free.server.close();
    const orphan = spawn(env["MONGOD_BINARY"] ?? "", [...args, String(free.port), "--replSet", "rs0"], {
      detached: true,
      stdio: "ignore",
    });
    await once(orphan, "spawn");
    const { mongodb } = await start(mongodbAlone());
    expect(await isAlive(orphan.pid ?? 0)).to.equal(false);
    expect(await values(mongodb.uri)).to.deep.equal(["first", "second"]);
    const second = {
      dataDir,
      env,
      ports: ANY_PORT,
      onProgress: () => undefined,
      onUnexpectedExit: () => undefined,
    };
    const error = await engineErrorOf(startEngines(second), "DATA_DIR");
    expect(error.message)
      .to.include(dataDir)
      .and.include(`process ${String(process.pid)}`);
    expect(await values(mongodb.uri)).to.deep.equal(["first", "second"]);
  });

  it("name in one line the taken port and the variable to change, and leave nothing running", async () => {
    const { port, server } = await occupy();
    try {
      for (const [ports, variable] of [
        [{ ...ANY_PORT, mongodb: port }, "MONGODB_PORT"],
        [{ ...ANY_PORT, temporal: port }, "TEMPORAL_PORT"],
        [{ ...ANY_PORT, temporalUi: port }, "TEMPORAL_UI_PORT"],
        [{ ...ANY_PORT, chain: port }, "CHAIN_PORT"],
      ] as const) {
        const error = await engineErrorOf(start({ ports }), "PORT_TAKEN");
        expect(error.message)
          .to.include(`Port ${String(port)}`)
          .and.include(variable);
      }
    } finally {
      server.close();
    }
    await nothingIsLeft();
  });

  it("say in one line that a binary ends at once, with its last words, and leave nothing running", async () => {
    const script =
      'case "$1" in --version) echo "db version v7.0.1";; *) echo "Error: no such CPU"; exit 4;; esac';
    const broken = await writeScript(path.join(dataDir, "broken-mongod"), script);
    const error = await engineErrorOf(start({ env: { ...env, MONGOD_BINARY: broken } }), "START_FAILED");
    expect(error.message).to.include(broken).and.include("Error: no such CPU");
    await nothingIsLeft();
  });

  it("say in one line that DATA_DIR cannot be written or used", async () => {
    const file = path.join(dataDir, "a-file");
    await writeFile(file, "");
    const error = await engineErrorOf(start({ dataDir: path.join(file, "data") }), "DATA_DIR");
    expect(error.message).to.include("cannot be written");
    // such a name would put the database of the workflows somewhere else
    const misread = await engineErrorOf(start({ dataDir: path.join(dataDir, "50%20x") }), "DATA_DIR");
    expect(misread.message).to.include("choose another folder");
  });

  it("are not started where the environment names addresses", async () => {
    const given = {
      MONGODB_URI: "mongodb://db.example",
      TEMPORAL_ADDRESS: "t.example:7233",
      TEMPORAL_NAMESPACE: "ns",
      EVM_RPC_URL: "https://rpc.example/a-key",
    };
    const { chain, mongodb, temporal } = await start({ env: given });
    expect(mongodb).to.deep.include({ uri: "mongodb://db.example", pid: null });
    expect(temporal).to.deep.include({ address: "t.example:7233", namespace: "ns", uiUrl: null, pid: null });
    expect(chain).to.deep.include({
      rpcUrl: "https://rpc.example/a-key",
      chainId: null,
      pid: null,
      embedded: false,
    });
    expect(await enginesOnDataDir()).to.deep.equal([]);
    const misspelt = { ...given, CARD_ISSUER: "simulater" };
    await running?.stop();
    expect((await engineErrorOf(start({ env: misspelt }), "CONFIG")).message).to.include("CARD_ISSUER");
  });
});
