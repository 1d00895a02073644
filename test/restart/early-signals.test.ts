import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { dataDirHolder } from "../../src/engines/data-dir.ts";
import { readRuntimeFile } from "../../src/engines/runtime-file.ts";
import { Child, ServiceProcess } from "../support/process.ts";
import { someOrAll } from "../support/soak.ts";
import { roleEnvironment } from "./support/roles.ts";

const MOMENT_MS = 120_000;
const ENDED = { code: 0, signal: null };

describe("A service that is told to end while it starts", () => {
  let service: ServiceProcess;
  before(async () => {
    service = await ServiceProcess.create();
  });
  after(() => service.dispose());

  const log = () => readFile(join(service.dataDir, "logs", "service.log"), "utf8").catch(() => "");

  /** Sends the signal at the moment, and finds that nothing is left. */
  async function endAt(signal: NodeJS.Signals, moment: (child: Child) => Promise<unknown>): Promise<void> {
    const child = Child.node("server/main.ts", ["start"], service.env);
    await moment(child);
    expect(await child.end(signal)).to.deep.equal(ENDED);
    expect(child.stderr).to.equal("");
    expect(child.stdout)
      .to.match(/^Stopping: /m)
      .and.not.include("is running");
    expect(await service.processes()).to.deep.equal([]);
    expect(await readRuntimeFile(service.dataDir)).to.equal(null);
    expect(await dataDirHolder(service.dataDir)).to.equal(null);
  }

  it("SIGTERM before an engine is up: exit 0, nothing runs, DATA_DIR is free, the log says so", async () => {
    await endAt("SIGTERM", (child) =>
      child.until("it is starting", MOMENT_MS, async () =>
        (await log()).includes('"starting"') ? true : null,
      ),
    );
    expect(await log())
      .to.include('"stopping"')
      .and.include("stopped, before it had started");
  });

  it("SIGINT while engines come up, on what that left: exit 0, and no engine is left", async () => {
    await endAt("SIGINT", (child) => child.printed(/^\w+: running \(process \d+\)$/m, MOMENT_MS));
  });

  for (const role of someOrAll(["server", "worker"], 1)) {
    it(`SIGTERM to a ${role} that has not reached its engines yet: it drains and exits with 0`, async () => {
      const child = Child.node("server/main.ts", [role], { ...roleEnvironment(), LOG_LEVEL: "info" });
      await child.printed(/"starting"/, MOMENT_MS);
      expect(await child.end("SIGTERM")).to.deep.equal(ENDED);
      expect(child.stderr).to.equal("");
      expect(child.stdout).to.match(/^Stopping: /m);
    });
  }
});
