import { relative } from "node:path";
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
  const failures: { title: string; message: string }[] = [];
  const filesMs = new Map<string, number>();
  const runner = mocha.run(() => {
    const { passes, failures: failed } = runner.stats ?? { passes: 0, failures: 1 };
    resolve({ passed: passes, failed, failures, filesMs: [...filesMs] });
  });
  runner.on("fail", (failed: Mocha.Runnable, { message }: Error) => {
    failures.push({ title: failed.fullTitle(), message });
  });
  let began = 0;
  runner.on("suite", (suite: Mocha.Suite) => {
    if (suite.parent?.root === true) began = performance.now();
  });
  runner.on("suite end", (suite: Mocha.Suite) => {
    if (suite.parent?.root !== true) return;
    const file = relative(process.cwd(), suite.file ?? "?");
    filesMs.set(file, (filesMs.get(file) ?? 0) + performance.now() - began);
  });
});
await closeSharedService();
process.send?.(result, () => process.exit());
