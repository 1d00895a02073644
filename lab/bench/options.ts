import { Command, InvalidArgumentError } from "commander";
import { CASES, type CaseName, SYSTEMS, type SystemName } from "./cases.ts";

export interface BenchOptions {
  readonly rounds: number;
  /** Of each measurement; of the hot agent's, twice as long. */
  readonly seconds: number;
  /** In so many parts, in which the systems of a case take turns. */
  readonly turns: number;
  /** Of each system's warm-up, spread over the agents and on the hot one. */
  readonly warmUpSeconds: number;
  /** Does not wait between measurements for what costs no money. */
  readonly isQuick: boolean;
  readonly systems: readonly SystemName[];
  readonly cases: readonly CaseName[];
  /** Agents that have nothing to do, on one worker of their own; null: not measured. */
  readonly idleAgents: number | null;
  /** Transactions whose lists and export are measured; null: none. */
  readonly listedRows: number | null;
  /** Whether recovery is measured beside a thousand pending wallet payments. */
  readonly pending: boolean;
  readonly json: boolean;
  /** Exit with a failure when a target is missed; errors and books that disagree always do. */
  readonly check: boolean;
  /** Folder for a V8 CPU profile of each system's process; null: none. */
  readonly profileDir: string | null;
}

const SECONDS_MAX = 60;
const ROUNDS_MAX = 20;
const TURNS_MAX = 20;

const IDLE_AGENTS_MAX = 100_000;

const DEFAULTS = { rounds: 3, seconds: 4, warmUpSeconds: 4, isQuick: false };
const QUICK = { rounds: 1, seconds: 1.5, warmUpSeconds: 1, isQuick: true };

/** Agents: where named, in a run of everything (more than a worker's cache holds), and in a quick run. */
const IDLE_AGENTS = { named: 10_000, amongAll: 3_000, quick: 200 };

const LISTED_ROWS_MAX = 10_000_000;

/** Transactions. A run of everything does not measure lists: a million take minutes to insert. */
const LISTED_ROWS = { named: 1_000_000, quick: 20_000 };

const upTo =
  (max: number) =>
  (value: string): number => {
    const number = Number(value);
    if (!Number.isFinite(number) || number <= 0 || number > max) {
      throw new InvalidArgumentError(`must be above 0 and at most ${String(max)}`);
    }
    return number;
  };

function wholeUpTo(max: number) {
  const parse = upTo(max);
  return (value: string): number => {
    const number = parse(value);
    if (!Number.isInteger(number)) throw new InvalidArgumentError("must be a whole number");
    return number;
  };
}

const IDLE = "idle";
const LISTS = "lists";
const PENDING = "pending";
type Measured = SystemName | CaseName;
/** Measurements that are no case of systems. */
const STANDALONE = [IDLE, LISTS, PENDING] as const;
type Name = Measured | (typeof STANDALONE)[number];
const NAMES: readonly Name[] = [...SYSTEMS, ...CASES, ...STANDALONE];

function named(value: string, earlier: readonly Name[]): readonly Name[] {
  const name = NAMES.find((each) => each === value);
  if (name === undefined) throw new InvalidArgumentError(`use one of ${NAMES.join(", ")}`);
  return [...earlier, name];
}

/** All of them, unless some are named; none, where only what needs none of them is. */
function chosen<T extends Measured>(all: readonly T[], only: readonly Name[]): readonly T[] {
  if (only.length > 0 && only.every((name) => STANDALONE.some((apart) => apart === name))) return [];
  const some = all.filter((name) => only.includes(name));
  return some.length > 0 ? some : all;
}

/** Measured only where they are asked for by name: thousands of agents take minutes to be made. */
const BY_NAME: readonly CaseName[] = ["roll-over"];

const casesOf = (only: readonly Name[]): readonly CaseName[] =>
  only.length === 0 ? CASES.filter((name) => !BY_NAME.includes(name)) : chosen(CASES, only);

interface Flags {
  readonly rounds?: number;
  readonly seconds?: number;
  readonly turns: number;
  readonly only: readonly Name[];
  readonly idle?: number;
  readonly rows?: number;
  readonly quick: boolean;
  readonly json: boolean;
  readonly check: boolean;
  readonly profile?: string;
}

function idleAgentsOf({ idle, only, quick }: Flags): number | null {
  const isNamed = only.includes(IDLE);
  if (!isNamed && only.length > 0) return null;
  if (quick) return idle ?? IDLE_AGENTS.quick;
  return idle ?? (isNamed ? IDLE_AGENTS.named : IDLE_AGENTS.amongAll);
}

function listedRowsOf({ only, quick, rows }: Flags): number | null {
  if (!only.includes(LISTS)) return null;
  return rows ?? (quick ? LISTED_ROWS.quick : LISTED_ROWS.named);
}

/** Reads the command line; ends the process with a line of help when it makes no sense. */
export function readOptions(argv: readonly string[]): BenchOptions {
  const program = new Command("bench")
    .description("Measures payments over REST beside bare Temporal updates and a plain endpoint on MongoDB.")
    .option("--quick", "one short round, under a minute: does it work, not how fast is it", false)
    .option("--rounds <n>", `interleaved rounds (${String(DEFAULTS.rounds)})`, wholeUpTo(ROUNDS_MAX))
    .option("--seconds <n>", `seconds of each measurement (${String(DEFAULTS.seconds)})`, upTo(SECONDS_MAX))
    .option(
      "--turns <n>",
      "parts of each measurement, in which systems take turns: for what differs by less than one measurement from the next",
      wholeUpTo(TURNS_MAX),
      1,
    )
    .option("--only <name>", `a system or a case, repeatable: ${NAMES.join(", ")}`, named, [])
    .option(
      "--idle <n>",
      `idle agents (${String(IDLE_AGENTS.amongAll)}; with --only idle ${String(IDLE_AGENTS.named)})`,
      wholeUpTo(IDLE_AGENTS_MAX),
    )
    .option(
      "--rows <n>",
      `transactions of --only lists (${String(LISTED_ROWS.named)})`,
      wholeUpTo(LISTED_ROWS_MAX),
    )
    .option("--json", "the result as JSON on standard output, progress on standard error", false)
    .option("--check", "fail when a target is missed", false)
    .option("--profile <folder>", "write a V8 CPU profile of each system's process")
    .parse([...argv]);
  const flags = program.opts<Flags>();
  const base = flags.quick ? QUICK : DEFAULTS;
  return {
    ...base,
    rounds: flags.rounds ?? base.rounds,
    seconds: flags.seconds ?? base.seconds,
    turns: flags.turns,
    systems: chosen(SYSTEMS, flags.only),
    cases: casesOf(flags.only),
    idleAgents: idleAgentsOf(flags),
    listedRows: listedRowsOf(flags),
    pending: flags.only.includes(PENDING),
    json: flags.json,
    check: flags.check,
    profileDir: flags.profile ?? null,
  };
}
