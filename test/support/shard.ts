import Mocha from "mocha";
import { createLogger } from "../../server/logger.ts";
import { installRuntime } from "../../server/worker.ts";
import { closeSharedService } from "./service.ts";
import type { ShardResult } from "./shard-result.ts";

// Runs the test files that are its arguments, and tells the process that started it how they ended.
process.on("disconnect", () => process.exit(1));
installRuntime(createLogger({ level: "fatal", file: null }));
const mocha = new Mocha({
  reporter: "spec",
  timeout: 60_000,
  slow: 5_000,
  forbidOnly: process.env["CI"] === "true",
});
for (const file of process.argv.slice(2)) mocha.addFile(file);
await mocha.loadFilesAsync();
const result = await new Promise<ShardResult>((resolve) => {
  const runner = mocha.run(() => {
    resolve({ passed: runner.stats?.passes ?? 0, failed: runner.stats?.failures ?? 1 });
  });
});
await closeSharedService();
process.send?.(result, () => process.exit());
