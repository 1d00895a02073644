import { Command } from "commander";
import { wholeUpTo } from "../option-values.ts";
import { freshSeed } from "../random.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly steps: number;
  readonly seconds: number;
  readonly json: boolean;
}

const STEPS_DEFAULT = 1_000_000;
const NUMBER_MAX = 2 ** 52;

const whole = wholeUpTo(NUMBER_MAX);

interface Flags {
  readonly seed?: number;
  readonly steps?: number;
  readonly seconds?: number;
  readonly json: boolean;
}

/** Reads the command line; ends the process with a line of help when it makes no sense. */
export function readOptions(argv: readonly string[]): SimulationOptions {
  const program = new Command("simulate")
    .description(
      "Runs agents and their ledger in simulated time, through crashes and lost messages, under an auditor's eyes.",
    )
    .option("--seed <n>", "the first world's seed (a fresh one); the next worlds have the next seeds", whole)
    .option("--steps <n>", `steps in all (${String(STEPS_DEFAULT)}, or as many as the seconds allow)`, whole)
    .option("--seconds <n>", "ends after so long (no bound)", whole)
    .option("--json", "the result as JSON on standard output, progress on standard error", false)
    .parse([...argv]);
  const { json, seconds, seed = freshSeed(), steps } = program.opts<Flags>();
  const stepsMax = steps ?? (seconds === undefined ? STEPS_DEFAULT : Infinity);
  return { seed, steps: stepsMax, seconds: seconds ?? Infinity, json };
}
