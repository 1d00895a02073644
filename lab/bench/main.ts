import { EngineError } from "../../src/engines/errors.ts";
import { readOptions } from "./options.ts";
import { report } from "./report.ts";
import { runBench } from "./run.ts";

/**
 * `npm run bench`: see lab/README.md. Fails on errors and on books that disagree; on a missed target only with
 * `--check`.
 */
const options = readOptions(process.argv);
const progress = options.json ? process.stderr : process.stdout;

try {
  const result = await runBench(options, (line) => void progress.write(`${line}\n`));
  process.stdout.write(options.json ? `${JSON.stringify(result, null, 2)}\n` : `\n${report(result)}\n`);
  const missed = options.check && result.targets.some(({ passed }) => passed === false);
  const failed = result.errors > 0 || result.disagreements.length > 0 || typeof result.idle === "string";
  process.exit(missed || failed ? 1 : 0);
} catch (error) {
  const message =
    error instanceof EngineError || !(error instanceof Error)
      ? String(error)
      : (error.stack ?? error.message);
  process.stderr.write(`error: ${message}\n`);
  process.exit(1);
}
