import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Mocha from "mocha";
import { startEngines } from "../../src/engines/start.ts";
import { resolveTestServer } from "../../src/engines/test-server.ts";
import { createLogger } from "../../server/logger.ts";
import { installRuntime } from "../../server/worker.ts";
import { closeSharedService } from "./service.ts";

/**
 * `npm test`: brings up one MongoDB and one Temporal for the whole run, hands their addresses to the tests in the
 * environment, runs every test file (or those named as arguments), and closes with the line `N passed, N failed`.
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const dataDir = await mkdtemp(join(tmpdir(), "spending-control-test-"));
const engines = await startEngines({
  dataDir,
  env: process.env,
  ports: { mongodb: 0, temporal: 0, temporalUi: 0 },
  onProgress: say,
  onUnexpectedExit: (engine, detail) => say(`the tests' ${engine} ended: ${detail}`),
});
process.env["TEST_MONGODB_URI"] = engines.mongodb.uri;
process.env["TEST_TEMPORAL_ADDRESS"] = engines.temporal.address;
process.env["TEST_TEMPORAL_NAMESPACE"] = engines.temporal.namespace;
process.env["TEST_TIME_SKIPPING_SERVER"] = await resolveTestServer(process.env, say);

installRuntime(createLogger({ level: "fatal", file: null }));
const named = process.argv.slice(2);
const files = named.length > 0 ? named : await testFiles();

const mocha = new Mocha({
  reporter: "spec",
  timeout: 60_000,
  slow: 5_000,
  forbidOnly: process.env["CI"] === "true",
});
for (const file of files) mocha.addFile(file);
await mocha.loadFilesAsync();
const { failed, passed } = await new Promise<{ passed: number; failed: number }>((resolve) => {
  const runner = mocha.run(() => {
    resolve({ passed: runner.stats?.passes ?? 0, failed: runner.stats?.failures ?? 1 });
  });
});
await closeSharedService();
await engines.stop();
await rm(dataDir, { recursive: true, force: true });
say(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);

async function testFiles(): Promise<string[]> {
  const found = await readdir("test", { recursive: true });
  return found
    .filter((file) => file.endsWith(".test.ts"))
    .toSorted()
    .map((file) => join("test", file));
}
