import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { createLogger, endLog } from "../../src/lib/logger.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { refusalsLog } from "../../src/temporal/refusals-log.ts";

const ERROR_LEVEL = 50;

describe("payloads in Temporal that are refused", () => {
  it("each counts; a workflow's are one line of the log, at the level of errors, with its place", async () => {
    const folder = await mkdtemp(join(tmpdir(), "spending-control-refusals-"));
    const file = join(folder, "service.log");
    const logger = createLogger({ level: "error", file });
    const metrics = new Metrics();
    const onRefused = refusalsLog(logger, metrics);
    onRefused("ledger/1", "altered");
    onRefused("ledger/1 activity 7", "altered");
    onRefused("ledger/1", "unknown_key");
    onRefused("ledger/2", "altered");
    await endLog(logger);
    const lines = (await readFile(file, "utf8")).trim().split("\n");
    await rm(folder, { recursive: true });
    const forged = "forged: a payload did not come from this service and was refused";
    expect(
      lines.map((line) => {
        const { level, msg, place, refused = null } = JSON.parse(line);
        return [level, place, refused, msg];
      }),
    ).to.deep.equal([
      [ERROR_LEVEL, "ledger/1", "altered", forged],
      [
        ERROR_LEVEL,
        "ledger/1",
        null,
        "a payload is sealed under a master key that this process does not have",
      ],
      [ERROR_LEVEL, "ledger/2", "altered", forged],
    ]);
    const text = await metrics.registry.metrics();
    expect(text).to.include('spending_control_forged_total{what="payload"} 3\n');
    expect(text).to.include('spending_control_forged_total{what="unknown_key"} 1\n');
  });
});
