import { Command, Option } from "commander";
import { reasonOf } from "./chaos/until.ts";
import { type RunResult, summaryText } from "./chaos/report.ts";
import { playRounds } from "./chaos/rounds.ts";
import { timeoutMsOf, withSite } from "./chaos/run.ts";
import { Cluster } from "./cluster/cluster.ts";
import { EVENT_NAMES, eventOf, type EventName } from "./cluster/events.ts";
import { tableText } from "./cluster/table.ts";
import { SEED_MAX, wholeUpTo } from "./option-values.ts";
import { freshSeed, Random } from "./random.ts";

// `npm run cluster`: the engines that companies run, and what happens to them, one event a round.

const PROJECTS_DEFAULT = [4];
const PROJECTS_MAX = 16;
const projectsOf = wholeUpTo(PROJECTS_MAX);

interface Flags {
  readonly events: readonly EventName[];
  readonly projects: readonly number[];
  readonly seed: number;
  readonly json: boolean;
  readonly keep: boolean;
}

const flags = new Command("cluster")
  .description(
    "Starts three mongod, PostgreSQL, two Temporal servers, haproxy, two servers and two workers on loopback, pays through them while one event after the other happens, and audits the books after each.",
  )
  .addOption(new Option("--events <names...>", "one a round").choices(EVENT_NAMES).default(EVENT_NAMES))
  .option(
    "--projects <n...>",
    "projects that pay at the same time, a run of its own for each number",
    (value, before: readonly number[]) =>
      before === PROJECTS_DEFAULT ? [projectsOf(value)] : [...before, projectsOf(value)],
    PROJECTS_DEFAULT,
  )
  .option(
    "--seed <n>",
    "repeats the choices of an earlier run (a fresh one)",
    wholeUpTo(SEED_MAX),
    freshSeed(),
  )
  .option("--json", "the result as JSON on standard output, progress on standard error", false)
  .option("--keep", "keep the data folder, with all logs, when the run fails", false)
  .parse()
  .opts<Flags>();

const { events, json, keep, projects, seed } = flags;
const progress = json ? process.stderr : process.stdout;
const say = (line: string): void => void progress.write(`${line}\n`);
const results: RunResult[] = [];
try {
  for (const tenants of projects) {
    const result = await withSite(
      {
        name: "cluster",
        keep,
        seed,
        say,
        start: (dataDir, tell) => Cluster.start(dataDir, tell),
        timeoutMs: timeoutMsOf(events.length),
      },
      (cluster) =>
        playRounds({
          site: cluster,
          seed,
          random: new Random(seed),
          disasters: events.map((name) => eventOf(name, cluster)),
          tenants,
          agesRecords: !events.some((name) => name.startsWith("restore")),
          say,
        }),
    );
    results.push(result);
    if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
    else
      say(
        summaryText(
          result,
          `cluster -- --events ${events.slice(0, result.rounds.length).join(" ")} --projects ${String(tenants)}`,
        ),
      );
  }
  if (!json) say(tableText(results));
  process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
} catch (error) {
  process.stderr.write(`error: the run broke off: ${reasonOf(error)}\n`);
  process.exitCode = 1;
}
process.exit();
