import { format } from "node:util";
import Mocha from "mocha";
import { builtFile } from "../../src/lib/package-root.ts";
import { repeatsSoFar } from "./api.ts";
import { closeAll } from "./at-end.ts";
import { sharedChromiumMs } from "./chromium.ts";
import { type FileResult, type LaneOrder, laneOrder } from "./lane-messages.ts";
import { dropFinishedDatabases } from "./finished-databases.ts";
import { mapped } from "./mapped-stack.ts";
import { processorTime } from "./processor-time.ts";
import { installTestRuntime } from "./runtime.ts";

/** Runs the test files that the process that started it names, one after another, and says how each ended. */

const TITLE_CHARACTERS_MAX = 90;
/** Only what hangs takes that long, on however busy a machine: what is promised within a time is held to it by its test. */
const TEST_MS = 300_000;

process.on("disconnect", () => process.exit(1));
installTestRuntime();

const said: string[] = [];
// The one way by which mocha's reporters print.
Mocha.reporters.Base.consoleLog = (...words: unknown[]) => void said.push(format(...words));

// What most files need is loaded while the engines come up.
await import("../../server/service.ts");
process.on("message", (message) => void carryOut(laneOrder.parse(message)));
process.send?.({ kind: "idle" });

async function carryOut({ env, file, grep }: LaneOrder): Promise<void> {
  if (file === null) {
    await closeAll();
    process.exit();
  }
  Object.assign(process.env, env);
  process.send?.(await run(file, grep));
}

async function run(file: string, grep: string | null): Promise<FileResult> {
  const [began, before, repeatsBefore] = [performance.now(), processorTime(), repeatsSoFar()];
  const browserBefore = await sharedChromiumMs();
  const mocha = new Mocha({
    reporter: "spec",
    timeout: TEST_MS,
    slow: 5_000,
    color: false,
    forbidOnly: process.env["CI"] === "true",
    ...(grep === null ? {} : { grep: new RegExp(grep, "i") }),
  });
  mocha.addFile(builtFile(file));
  said.length = 0;
  const failures: { title: string; message: string }[] = [];
  const stats = { passed: 0, failed: 0, pending: 0, replays: 0 };
  try {
    await mocha.loadFilesAsync();
    await new Promise<void>((resolve) => {
      const runner = mocha.run(() => resolve());
      runner.on("pass", () => (stats.passed += 1));
      runner.on("pending", () => (stats.pending += 1));
      runner.on("retry", () => (stats.replays += 1));
      runner.on("fail", (failed: Mocha.Runnable, error: Error) => {
        stats.failed += 1;
        // Before the reporter prints it.
        error.stack = mapped(error.stack ?? "");
        failures.push({ title: failed.fullTitle(), message: error.message });
      });
    });
  } catch (error) {
    stats.failed += 1;
    failures.push({
      title: file,
      message: mapped(error instanceof Error ? (error.stack ?? "") : String(error)),
    });
  }
  mocha.dispose();
  await dropFinishedDatabases().catch((error: unknown) => {
    process.stderr.write(`the databases of ${file} were not dropped: ${String(error)}\n`);
  });
  for (const title of longTitles(mocha.suite)) {
    stats.failed += 1;
    failures.push({ title, message: `a title has at most ${String(TITLE_CHARACTERS_MAX)} characters` });
  }
  const after = processorTime();
  const browserMs = (await sharedChromiumMs()) - browserBefore;
  return {
    kind: "result",
    file,
    ...stats,
    failures,
    output: said.join("\n"),
    ms: performance.now() - began,
    ownCpuMs: after.ownMs - before.ownMs,
    // A browser that goes on is not among those that have ended.
    childCpuMs: after.childrenMs - before.childrenMs + browserMs,
    repeats: repeatsSoFar() - repeatsBefore,
  };
}

const longTitles = (suite: Mocha.Suite): string[] => [
  ...[...suite.suites, ...suite.tests]
    .map(({ title }) => title)
    .filter((title) => title.length > TITLE_CHARACTERS_MAX),
  ...suite.suites.flatMap(longTitles),
];
