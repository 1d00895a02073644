import { readdir, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "chai";
import { holdDataDir } from "../../src/engines/data-dir.ts";
import {
  readLiveRuntimeFile,
  readRuntimeFile,
  removeRuntimeFile,
  type RuntimeFile,
  writeRuntimeFile,
} from "../../src/engines/runtime-file.ts";
import { readConfig } from "../../server/config.ts";
import { embeddedEngines } from "../../server/engines.ts";
import { createLogger } from "../../src/lib/logger.ts";
import { engineErrorOf, removeFolder, scratchFolder } from "./support/scratch.ts";

const CONTENT: RuntimeFile = {
  pid: process.pid,
  startedAt: "2026-11-21T10:00:00.000Z",
  baseUrl: "http://127.0.0.1:8080",
  mcpUrl: "http://127.0.0.1:8080",
  mongodb: { uri: "mongodb://127.0.0.1:27017/?replicaSet=rs0", pid: 7 },
  temporal: { address: "127.0.0.1:7233", namespace: "ns", uiUrl: null, pid: null },
  chain: { rpcUrl: "http://127.0.0.1:8545", pid: 9 },
};

describe("runtime.json", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await scratchFolder();
  });
  afterEach(() => removeFolder(folder));

  it("is read as it was written, by its owner alone, and leaves nothing else behind", async () => {
    expect(await readRuntimeFile(folder)).to.equal(null);
    await writeRuntimeFile(folder, CONTENT);
    await writeRuntimeFile(folder, { ...CONTENT, mongodb: { ...CONTENT.mongodb, pid: 8 } });
    expect((await readRuntimeFile(folder))?.mongodb.pid).to.equal(8);
    expect((await stat(path.join(folder, "runtime.json"))).mode % 0o1000).to.equal(0o600);
    expect(await readdir(folder)).to.deep.equal(["runtime.json"]);
    await removeRuntimeFile(folder);
    await removeRuntimeFile(folder);
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it("tells nothing of a service that was killed: only what lives is live", async () => {
    await writeRuntimeFile(folder, CONTENT);
    expect(await readLiveRuntimeFile(folder)).to.equal(null);
    const held = await holdDataDir(folder);
    expect(await readLiveRuntimeFile(folder)).to.deep.equal(CONTENT);
    await writeRuntimeFile(folder, { ...CONTENT, pid: process.pid + 1 });
    expect(await readLiveRuntimeFile(folder)).to.equal(null);
    await held.release();
  });

  it("does not name a chain that is not ours, whose address carries a key", async () => {
    const env = {
      DATA_DIR: folder,
      MONGODB_URI: process.env["TEST_MONGODB_URI"],
      TEMPORAL_ADDRESS: process.env["TEST_TEMPORAL_ADDRESS"],
      TEMPORAL_NAMESPACE: process.env["TEST_TEMPORAL_NAMESPACE"],
      EVM_RPC_URL: "https://rpc.example/v2/key",
    };
    const engines = await embeddedEngines({
      config: readConfig(env, "127.0.0.1"),
      env,
      baseUrl: CONTENT.baseUrl,
      mcpUrl: CONTENT.mcpUrl,
      logger: createLogger({ level: "silent", file: null }),
      onProgress: () => undefined,
      signal: new AbortController().signal,
      onFailed: () => undefined,
    });
    expect(engines.addresses.evmRpcUrl).to.equal(env.EVM_RPC_URL);
    await engines.announce();
    expect((await readRuntimeFile(folder))?.chain).to.deep.equal({ rpcUrl: null, pid: null });
    await engines.stop();
  });

  it("is refused in one line when it is not ours", async () => {
    await writeFile(path.join(folder, "runtime.json"), '{"pid": "1"}');
    const error = await engineErrorOf(readRuntimeFile(folder), "DATA_DIR");
    expect(error.message).to.include("runtime.json cannot be read");
  });
});
