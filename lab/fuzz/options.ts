import { Command, Option } from "commander";
import { type Caller, CALLERS } from "./credentials.ts";
import { SEED_MAX, wholeUpTo } from "../option-values.ts";
import { freshSeed } from "../random.ts";

export interface FuzzOptions {
  readonly callers: readonly Caller[];
  /** One pass of each caller for each. */
  readonly seeds: readonly number[];
  /** For one pass. */
  readonly seconds: number;
  /** For one operation in one phase. */
  readonly maxExamples: number;
  readonly keep: boolean;
}

const SEED_FIXED = 7;
const SECONDS_DEFAULT = 180;
/** A session is stepped up for 5 minutes. */
const SECONDS_MAX = 280;
const EXAMPLES_DEFAULT = 20;
const EXAMPLES_MAX = 10_000;

interface Flags {
  readonly caller?: Caller;
  readonly seed?: number;
  readonly seconds: number;
  readonly examples: number;
  readonly keep: boolean;
}

/** Reads the command line; ends the process with a line of help when it makes no sense. */
export function readOptions(argv: readonly string[]): FuzzOptions {
  const program = new Command("fuzz")
    .description(
      "Sends requests by the OpenAPI document, valid and invalid ones, anonymously, as a person and with each kind of key, and holds " +
        "every answer against the document.",
    )
    .option("--seed <n>", "this seed alone (a fixed one, and a fresh one)", wholeUpTo(SEED_MAX))
    .option("--seconds <n>", "for each seed and caller, at most", wholeUpTo(SECONDS_MAX), SECONDS_DEFAULT)
    .option("--examples <n>", "random requests for each operation", wholeUpTo(EXAMPLES_MAX), EXAMPLES_DEFAULT)
    .addOption(new Option("--caller <name>", "this caller alone (all, one after another)").choices(CALLERS))
    .option("--keep", "keep the folder with the service's log", false)
    .parse([...argv]);
  const { caller, examples, keep, seconds, seed } = program.opts<Flags>();
  return {
    callers: caller === undefined ? CALLERS : [caller],
    seeds: seed === undefined ? [SEED_FIXED, freshSeed()] : [seed],
    seconds,
    maxExamples: examples,
    keep,
  };
}
