import { Command } from "commander";
import { SEED_MAX, wholeUpTo } from "../option-values.ts";
import { freshSeed } from "../random.ts";

export interface ChaosOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly json: boolean;
  /** Keeps the data folder when the run fails. */
  readonly keep: boolean;
  /** Plays with cards of a simulated network instead of the other rails. */
  readonly cards: boolean;
}

const ROUNDS_DEFAULT = 5;
const ROUNDS_MAX = 10_000;

interface Flags {
  readonly rounds: number;
  readonly seed?: number;
  readonly json: boolean;
  readonly keep: boolean;
  readonly cards: boolean;
}

/** Reads the command line; ends the process with a line of help when it makes no sense. */
export function readOptions(argv: readonly string[]): ChaosOptions {
  const program = new Command("chaos")
    .description(
      "Pays through a service whose processes, engines and chain are killed and cut off meanwhile, and audits the books.",
    )
    .option("--rounds <n>", "disasters, one a round", wholeUpTo(ROUNDS_MAX), ROUNDS_DEFAULT)
    .option("--seed <n>", "repeats the choices of an earlier run (a fresh one)", wholeUpTo(SEED_MAX))
    .option("--json", "the result as JSON on standard output, progress on standard error", false)
    .option("--keep", "keep the data folder, with all logs, when the run fails", false)
    .option(
      "--cards",
      "a card network does anything with the payments' cards, instead of the other rails",
      false,
    )
    .parse([...argv]);
  const { cards, json, keep, rounds, seed = freshSeed() } = program.opts<Flags>();
  return { rounds, seed, json, keep, cards };
}
