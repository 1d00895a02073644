import { readOptions } from "./chaos/options.ts";
import { summaryText } from "./chaos/report.ts";
import { runChaos } from "./chaos/run.ts";
import { reasonOf } from "./chaos/until.ts";

// `npm run chaos`: payments while everything is killed in turn, and an audit of the books after each disaster.
const options = readOptions(process.argv);
const command = `chaos -- ${options.cards ? "--cards " : ""}--rounds`;
const progress = options.json ? process.stderr : process.stdout;
const say = (line: string): void => void progress.write(`${line}\n`);
try {
  const result = await runChaos(options, say);
  if (options.json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else say(summaryText(result, `${command} ${String(result.rounds.length)}`));
  process.exitCode = result.passed ? 0 : 1;
} catch (error) {
  const again = `npm run ${command} ${String(options.rounds)} --seed ${String(options.seed)} --keep`;
  process.stderr.write(`error: the run broke off: ${reasonOf(error)}\nRepeat it with \`${again}\`.\n`);
  process.exitCode = 1;
}
process.exit();
