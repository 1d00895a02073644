import { readOptions } from "./simulation/options.ts";
import { summaryText, violationText } from "./simulation/report.ts";
import { runWorlds } from "./simulation/run.ts";

// `npm run simulate`: the domain's actors in simulated time, under an auditor's eyes.
const PROGRESS_EVERY_MS = 5_000;

const { json, seconds, seed, steps } = readOptions(process.argv);
const progress = json ? process.stderr : process.stdout;
const say = (line: string): void => void progress.write(`${line}\n`);
say(`Seed ${String(seed)}.`);
let saidAt = performance.now();
const result = await runWorlds({
  seed,
  stepsMax: steps,
  secondsMax: seconds,
  onWorld: (world, soFar) => {
    if (performance.now() - saidAt < PROGRESS_EVERY_MS) return;
    saidAt = performance.now();
    const rate = Math.round((soFar.steps / soFar.seconds) * 60);
    say(`seed ${String(world.seed)} done: ${String(soFar.steps)} steps, ${String(rate)} a minute`);
  },
});
if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
else say(summaryText(result));
if (result.failed !== null) say(violationText(result.failed));
process.exitCode = result.failed === null ? 0 : 1;
