import { expect } from "chai";
import { anvilSpec } from "../../src/engines/anvil.ts";
import { mongodbSpec } from "../../src/engines/mongodb.ts";
import { loadTemporalDevConfig } from "../../src/engines/temporal-config.ts";
import { temporalDatabase, temporalSpec } from "../../src/engines/temporal.ts";

const DATA_DIR = "/data";
const of = (name: string) => ({ binary: `/bin/${name}`, logFile: `/data/logs/${name}.log`, env: {} });

function expectParts(text: string, ...parts: readonly string[]): void {
  for (const part of parts) expect(text).to.include(part);
}

describe("An engine that can't be started again", () => {
  it("says where its log and its files are, and which setting uses an engine of one's own", async () => {
    const config = await loadTemporalDevConfig();
    const database = temporalDatabase(DATA_DIR, config);
    const at = { host: "127.0.0.1", port: 1 };
    const access = { key: "", password: "a-password-of-its-own" };
    const mongod = mongodbSpec({ ...of("mongod"), dataDir: DATA_DIR, port: 1, access });
    const temporal = temporalSpec({ ...of("temporal"), database, port: 1, ui: null, config });
    const anvil = anvilSpec({ ...of("anvil"), dataDir: DATA_DIR, at, onProgress: () => undefined });
    expectParts(mongod.remedy, "/data/logs/mongod.log", "/data/mongodb", "MONGODB_URI");
    expectParts(temporal.remedy, "/data/logs/temporal.log", database, "TEMPORAL_ADDRESS", "restore-ledger");
    expectParts(anvil.remedy, "/data/logs/anvil.log", "/data/chain", "EVM_RPC_URL");
    expect(mongod.remedy).not.to.include(access.password);
  });
});
