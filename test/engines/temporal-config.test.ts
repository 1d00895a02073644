import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "chai";
import { enginePorts } from "../../src/engines/ports.ts";
import { loadTemporalDevConfig, temporalArguments } from "../../src/engines/temporal-config.ts";
import { SEARCH_ATTRIBUTES } from "../../src/messages/common.ts";
import { engineErrorOf, removeFolder, scratchFolder } from "./support/scratch.ts";

describe("temporal-dev.yaml", () => {
  let folder: string;
  const written = async (text: string): Promise<string> => {
    const file = path.join(folder, "temporal-dev.yaml");
    await writeFile(file, text);
    return file;
  };

  before(async () => {
    folder = await scratchFolder();
  });
  after(() => removeFolder(folder));

  it("registers every search attribute that workflows set: one that is missing wedges them", async () => {
    const { searchAttributes } = await loadTemporalDevConfig();
    const registered = Object.entries(searchAttributes);
    expect(registered.map(([name]) => name)).to.include.members(Object.values(SEARCH_ATTRIBUTES));
    for (const [, type] of registered) expect(type).to.equal("Keyword");
  });

  it("becomes flags that listen on loopback only", async () => {
    const config = await loadTemporalDevConfig();
    const flags = temporalArguments(config, {
      port: 1,
      ui: { host: "127.1.2.3", port: 2 },
      databaseFile: "/d/t.db",
    });
    const valueOf = (flag: string): string | undefined => flags[flags.indexOf(flag) + 1];
    expect(valueOf("--ip")).to.equal("127.0.0.1");
    expect(valueOf("--ui-ip")).to.equal("127.1.2.3");
    expect(temporalArguments(config, { port: 1, ui: null, databaseFile: "t" })).to.include("--headless");
    expect(valueOf("--db-filename")).to.equal("/d/t.db");
    expect(flags).to.include("AgentId=Keyword");
    expect(flags.join(" "), "a limit that a cluster does not have").to.not.match(/maxInFlight|maxTotal/);
    expect(flags).to.include('history.timerProcessorMaxTimeShift="10ms"');
  });

  it("is refused with an unknown key, a misspelt dynamic setting or a database outside DATA_DIR", async () => {
    const good = [
      "namespace: { name: ns, retentionDays: 1 }",
      "ports: { frontend: 1, ui: 2 }",
      "logLevel: error",
      "sqlitePragmas: { journal_mode: WAL, synchronous: FULL }",
      "searchAttributes: { AgentId: Keyword }",
    ].join("\n");
    const rest = (databaseFile: string, setting: string): string =>
      `${good}\ndatabaseFile: ${databaseFile}\ndynamicConfig: { ${setting}: 1 }\n`;
    await loadTemporalDevConfig(await written(rest("t/t.db", "matching.numTaskqueueReadPartitions")));
    for (const [text, why] of [
      [`${rest("t.db", "matching.numTaskqueueReadPartitions")}surprise: 1\n`, "surprise"],
      [rest("t.db", "matching.numTaskqueueReedPartitions"), "dynamicConfig"],
      [rest("../t.db", "matching.numTaskqueueReadPartitions"), "databaseFile"],
      [rest("/t.db", "matching.numTaskqueueReadPartitions"), "databaseFile"],
      ["{", "cannot be read"],
    ] as const) {
      const error = await engineErrorOf(loadTemporalDevConfig(await written(text)), "CONFIG");
      expect(error.message).to.include("temporal-dev.yaml").and.include(why);
    }
  });

  it("gives the ports that the environment leaves open, and a malformed port is refused", async () => {
    const config = await loadTemporalDevConfig();
    expect(enginePorts({}, config)).to.deep.equal({
      mongodb: 27_017,
      temporal: 7_233,
      temporalUi: 8_233,
      chain: 8_545,
      cardNetwork: 12_120,
    });
    expect(enginePorts({ MONGODB_PORT: "0", TEMPORAL_UI_PORT: "9" }, config)).to.include({
      mongodb: 0,
      temporalUi: 9,
    });
    for (const value of ["65536", "-1", "80x", "1.5"]) {
      expect(() => enginePorts({ TEMPORAL_PORT: value }, config)).to.throw(/^TEMPORAL_PORT is not a port/);
    }
  });
});
