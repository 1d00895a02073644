import { freshSeed } from "./random.ts";
import { measured } from "./what-if/run.ts";

// `npm run what-if [seed] [payments]`: simulating what was in force must reproduce every recorded verdict.
const [seed = freshSeed(), payments = 100_000] = process.argv.slice(2).map(Number);
const { cpuSeconds, examples, heapMiB, moves, ...rest } = measured(seed, payments);
const figures = { seed, ...rest, cpuSeconds, heapMiB };
process.stdout.write(`${JSON.stringify(figures)}\n`);
for (const example of [...moves, ...examples.slice(-5)]) process.stdout.write(`${JSON.stringify(example)}\n`);
process.exitCode = moves.length === 0 ? 0 : 1;
