import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { callRpc } from "../../src/engines/anvil-rpc.ts";
import { ChainSnapshots } from "../../src/engines/chain-snapshots.ts";
import { newestState } from "../../src/engines/chain-state.ts";
import { isAlive } from "../../src/engines/processes.ts";
import { type EngineOptions, type RunningEngines, startEngines } from "../../src/engines/start.ts";
import { startChainProxy } from "../../lab/chaos/chain-proxy.ts";
import { shortOrSoak, someOrAll } from "../support/soak.ts";
import { engineEnvironment } from "./support/binaries.ts";
import { ChainClient, savedBlock } from "./support/chain.ts";
import { removeFolder, scratchFolder } from "./support/scratch.ts";

const POLL_MS = 10;
const WAIT_MS = 120_000;
/** Never in these tests: what is saved is saved at the stop, or by anvil as it ends. */
const NO_SNAPSHOTS = null;
const KILLS = shortOrSoak(1, 10);
const OFTEN_MS = 50;
const NEVER_MS = 3_600_000;
/** So often a snapshot tries to let the mining go on. */
const RESUMED_MAX = 5;

async function until(what: string, isThere: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await isThere())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${String(WAIT_MS)} ms`);
    await sleep(POLL_MS);
  }
}

const clientOf = ({ chain }: RunningEngines): ChainClient => new ChainClient(chain.rpcUrl);
const kill = ({ chain }: RunningEngines): boolean => process.kill(chain.pid ?? 0, "SIGKILL");
const takeAll = (): Promise<null> => Promise.resolve(null);

describe("The embedded local chain", () => {
  let scratch: string;
  let dataDir: string;
  let env: NodeJS.ProcessEnv;
  let said: string[];
  let events: string[];
  let running: RunningEngines | null = null;
  let count = 0;

  /** The chain alone: the other engines are external, and are not asked. */
  const start = async (more: Partial<EngineOptions> = {}): Promise<RunningEngines> => {
    running = await startEngines({
      dataDir,
      env,
      ports: { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 },
      onProgress: (line) => said.push(line),
      onUnexpectedExit: (engine) => events.push(`${engine} ended`),
      onRestarted: (engine) => events.push(`${engine} restarted`),
      ...more,
    });
    return running;
  };
  const fileIn = (name: string): string => path.join(dataDir, "chain", name);
  const restarts = (): number => events.filter((event) => event === "anvil restarted").length;

  before(async () => {
    const others = { MONGODB_URI: "mongodb://db.example", TEMPORAL_ADDRESS: "t:1", TEMPORAL_NAMESPACE: "ns" };
    env = { ...(await engineEnvironment()), ...others };
    scratch = await scratchFolder();
  });
  beforeEach(() => {
    said = [];
    events = [];
    dataDir = path.join(scratch, `data dir ${String((count += 1))}`);
  });
  afterEach(async () => {
    await running?.stop();
    running = null;
  });
  after(() => removeFolder(scratch));

  it("is a chain of a known id and resumes after a stop: blocks, balances, receipts, nonces", async () => {
    const first = await start();
    expect(first.chain).to.include({ chainId: 31_337, embedded: true });
    const client = clientOf(first);
    const hashes = [await client.paid(), await client.paid(), await client.paid()];
    const receipts = await Promise.all(hashes.map((hash) => client.receipt(hash)));
    expect(receipts).not.to.include(null);
    await first.stop();
    for (const chainSnapshotMs of [NO_SNAPSHOTS, OFTEN_MS]) {
      const next = clientOf(await start({ chainSnapshotMs }));
      expect(await Promise.all(hashes.map((hash) => next.receipt(hash)))).to.deep.equal(receipts);
      const [nonce, blockNumber] = [await next.nonce(), await next.blockNumber()];
      expect(await next.received()).to.equal(nonce);
      expect(await next.receipt(await next.paid())).to.include({
        blockNumber: `0x${(blockNumber + 1).toString(16)}`,
      });
      await running?.stop();
    }
  });

  it("is back after kill -9 on the same port with its last snapshot, and no client sees less", async () => {
    const engines = await start({ chainSnapshotMs: OFTEN_MS });
    const client = clientOf(engines);
    const hash = await client.paid();
    await until("a snapshot", async () => (await savedBlock(dataDir)) >= 1);
    const saved = await savedBlock(dataDir);
    kill(engines);
    const seen: number[] = [];
    await until("the restart", async () => {
      const answer = await client.blockNumber().catch(() => null);
      if (answer !== null) seen.push(answer);
      return restarts() === 1;
    });
    seen.push(await client.blockNumber());
    expect(Math.min(...seen)).to.be.at.least(saved);
    expect(await client.receipt(hash)).not.to.equal(null);
  });

  it("is consistent after kill -9 under load: a transaction has effect and receipt, or neither", async () => {
    const engines = await start({ chainSnapshotMs: OFTEN_MS });
    const client = clientOf(engines);
    for (let round = 1; round <= KILLS; round += 1) {
      const from = await client.nonce();
      const hashes: string[] = [];
      const saved = await savedBlock(dataDir);
      const paying = (async () => {
        for (let nonce = from; ; nonce += 1) hashes.push(await client.pay(nonce));
      })().catch(() => undefined); // the chain is gone
      await until("two snapshots under load", async () => (await savedBlock(dataDir)) > saved + 2);
      const least = await savedBlock(dataDir);
      kill(engines);
      await paying;
      await until("the restart", () => restarts() === round);
      expect(await client.blockNumber()).to.be.at.least(least);
      const nonce = await client.nonce();
      expect(await client.received()).to.equal(nonce);
      for (const [index, hash] of hashes.entries()) {
        const isThere = (await client.receipt(hash)) !== null;
        expect(isThere, `payment ${String(from + index)} of ${String(nonce)}`).to.equal(from + index < nonce);
      }
    }
    expect(await client.receipt(await client.paid())).not.to.equal(null);
  });

  const damages = [
    ["half a file", (whole: string) => whole.slice(0, whole.length / 2)],
    ["garbage", () => "\u0000 no state at all"],
    ["an empty file", () => ""],
    ["foreign JSON", () => '{"block": 1}'],
    ["short of a block", (whole: string) => whole.replace(/"best_block_number":/, "$&1")],
  ] as const;
  for (const [what, damage] of someOrAll(damages, 1)) {
    it(`newest snapshot is ${what}: sets it aside, says so, uses the one before`, async () => {
      const first = await start();
      const hash = await clientOf(first).paid();
      await first.stop();
      const whole = await readFile(fileIn("state.json"), "utf8");
      await rename(fileIn("state.exit.json"), fileIn("state.previous.json"));
      await writeFile(fileIn("state.json"), damage(whole));
      const next = await start();
      expect(await clientOf(next).receipt(hash)).not.to.equal(null);
      expect(await readFile(fileIn("state.json.unusable"), "utf8")).to.equal(damage(whole));
      expect(said.join("\n"))
        .to.include("state.json cannot be used")
        .and.include("goes on with the snapshot");
    });
  }

  it("begins anew when no state can be used, and says so; nothing of that comes back later", async () => {
    const first = await start();
    await clientOf(first).paid();
    await first.stop();
    for (const name of ["state.json", "state.previous.json", "state.exit.json"]) {
      await writeFile(fileIn(name), "{");
    }
    const empty = await start();
    expect(await clientOf(empty).blockNumber()).to.equal(0);
    expect(said.join("\n")).to.include("the chain starts empty");
    const hash = await clientOf(empty).paid();
    await empty.stop();
    expect(await clientOf(await start()).receipt(hash)).not.to.equal(null);
    expect(await readdir(path.join(dataDir, "chain"))).to.include.members([
      "state.json.unusable",
      "state.previous.json.unusable",
      "state.exit.json.unusable",
    ]);
  });

  it("uses its last snapshot, not anvil's final state when that lacks an effect's transaction", async () => {
    const first = await start();
    const hash = await clientOf(first).paid();
    await first.stop();
    const next = await start({ chainSnapshotMs: NO_SNAPSHOTS });
    await clientOf(next).paid();
    await next.stop();
    const state: unknown = JSON.parse(await readFile(fileIn("state.exit.json"), "utf8"));
    const torn = JSON.stringify(state, (key, value: unknown) =>
      key === "transactions" && Array.isArray(value) ? value.filter(isOfTheFirstBlock) : value,
    );
    await writeFile(fileIn("state.exit.json"), torn);
    const client = clientOf(await start());
    expect(await client.receipt(hash)).not.to.equal(null);
    expect(await client.nonce()).to.equal(1);
    expect(said.join("\n")).to.include("a transaction is missing in it");
  });

  it("drops old blocks between two runs, and keeps its number, balances and newest receipts", async () => {
    const first = await start();
    const client = clientOf(first);
    const old = await client.paid();
    await callRpc(client.rpcUrl, "anvil_mine", ["0x1e"]);
    const hash = await client.paid();
    const [blockNumber, receipt] = [await client.blockNumber(), await client.receipt(hash)];
    await first.stop();
    const state = await newestState({
      folder: fileIn(""),
      examine: takeAll,
      onProgress: () => undefined,
      blocksRetained: 10,
    });
    const text = await readFile(state ?? "", "utf8");
    expect(text.match(/"parentHash"/g)).to.have.length(11);

    const next = clientOf(await start());
    expect(await next.blockNumber()).to.be.within(blockNumber, blockNumber + 1);
    expect(await next.received()).to.equal(2);
    expect(await next.receipt(hash)).to.deep.equal(receipt);
    expect(await next.receipt(old)).to.equal(null);
    expect(await next.receipt(await next.paid())).not.to.equal(null);
  });

  it("leaves the mining as it finds it: on in general, off for an operator who has stopped it", async () => {
    const client = clientOf(await start({ chainSnapshotMs: OFTEN_MS }));
    await callRpc(client.rpcUrl, "evm_setAutomine", [false]);
    const hash = await client.pay(0);
    await callRpc(client.rpcUrl, "evm_mine");
    expect(await client.receipt(hash)).not.to.equal(null);
    await until("a snapshot", async () => (await savedBlock(dataDir)) >= 1);
    expect(await callRpc(client.rpcUrl, "anvil_getAutomine")).to.equal(false);
    expect(await client.blockNumber()).to.equal(1);
    await callRpc(client.rpcUrl, "evm_setAutomine", [true]);
    for (let nonce = 1; nonce < 60; nonce += 1) await client.pay(nonce);
    await client.mined(59);
    expect(await client.received()).to.equal(60);
  });

  it("mining that a snapshot failed to resume is resumed by the next one", async () => {
    const client = clientOf(await start({ chainSnapshotMs: NO_SNAPSHOTS }));
    const proxy = await startChainProxy(client.rpcUrl);
    let refused = 0;
    proxy.behave((body) =>
      body.includes('"evm_setAutomine","params":[true]') && (refused += 1) <= RESUMED_MAX
        ? "cut-before"
        : "pass",
    );
    const options = { rpcUrl: proxy.url, folder: path.join(dataDir, "chain"), intervalMs: OFTEN_MS };
    const snapshots = await ChainSnapshots.start({ ...options, onProgress: (line) => said.push(line) });
    await client.pay(0);
    await until("a snapshot that gives up", () => said.join().includes("no snapshot was taken"));
    await until("mining", async () => (await callRpc(client.rpcUrl, "anvil_getAutomine")) === true);
    await snapshots.stop();
    await proxy.close();
    expect(refused).to.be.greaterThan(RESUMED_MAX);
    await client.paid();
  });

  it("the last snapshot is tried again when the chain does not answer", async () => {
    const client = clientOf(await start({ chainSnapshotMs: NO_SNAPSHOTS }));
    const proxy = await startChainProxy(client.rpcUrl);
    let dumps = 0;
    proxy.behave((body) => (body.includes("anvil_dumpState") && (dumps += 1) === 1 ? "cut-before" : "pass"));
    const options = { rpcUrl: proxy.url, folder: path.join(dataDir, "chain"), intervalMs: NEVER_MS };
    const snapshots = await ChainSnapshots.start({ ...options, onProgress: (line) => said.push(line) });
    await client.paid();
    await snapshots.stop();
    await proxy.close();
    expect(dumps).to.equal(2);
    expect(await savedBlock(dataDir)).to.be.at.least(1);
  });

  it("left without guardian and service is ended by the next start on the same DATA_DIR", async () => {
    const { chain, stop } = await start();
    await stop();
    const args = ["--port", new URL(chain.rpcUrl).port, "--dump-state", fileIn("state.exit.json")];
    const orphan = spawn(env["ANVIL_BINARY"] ?? "", args, { detached: true, stdio: "ignore" });
    await once(orphan, "spawn");
    await start();
    expect(await isAlive(orphan.pid ?? 0)).to.equal(false);
    expect(said.join("\n")).to.include(`anvil: ending process ${String(orphan.pid)}`);
  });

  it("is not started where EVM_RPC_URL names one", async () => {
    const { chain } = await start({ env: { ...env, EVM_RPC_URL: "https://rpc.example/v2/key" } });
    expect(chain).to.deep.include({ rpcUrl: "https://rpc.example/v2/key", chainId: null, embedded: false });
    expect(chain.pid).to.equal(null);
    expect(said).to.deep.equal([]);
  });
});

/** As anvil has transactions in its list of them, or inside a block. */
const isOfTheFirstBlock = (one: unknown): boolean =>
  typeof one === "object" && one !== null && (!("block_number" in one) || one.block_number === 1);
