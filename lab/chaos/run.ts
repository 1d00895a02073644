import { once } from "node:events";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../random.ts";
import { playCardRounds } from "./card-rounds.ts";
import { Deployment } from "./deployment.ts";
import { DISASTERS, disasterOf, type DisasterName, WITHOUT_CHAIN } from "./disasters.ts";
import type { ChaosOptions } from "./options.ts";
import type { RunResult } from "./report.ts";
import { playRounds } from "./rounds.ts";

/** Maximum time of a site's start, in which Temporal's server may be compiled. */
const START_TIMEOUT_MS = 2_400_000;
/** Maximum time of a round: a restore with all its commands takes the longest. */
const ROUND_TIMEOUT_MS = 900_000;
/** Maximum time in which a site ends. */
const STOP_TIMEOUT_MS = 120_000;
/** Longest time of a timer in Node. */
const TIMER_MAX_MS = 2_147_483_647;

type Say = (line: string) => void;

/** One run: everything up, rounds, a last audit of it all, everything down again, whatever happens. */
export const runChaos = ({ cards, keep, rounds, seed }: ChaosOptions, say: Say): Promise<RunResult> =>
  withSite(
    {
      name: "chaos",
      keep,
      seed,
      say,
      start: (dataDir, tell) => Deployment.start(dataDir, tell),
      timeoutMs: timeoutMsOf(rounds),
    },
    (deployment) => {
      const random = new Random(seed);
      const names = disasterNames(cards ? WITHOUT_CHAIN : DISASTERS, rounds, random.fork("disasters"));
      const disasters = names.map((name) => disasterOf(name, deployment));
      const common = { site: deployment, seed, random, disasters, say };
      const { cardNetwork } = deployment;
      return cards
        ? playCardRounds({ ...common, cardNetwork })
        : playRounds({ ...common, tenants: 1, agesRecords: true });
    },
  );

/** All kinds in turn, each time in another order. */
function disasterNames(kinds: readonly DisasterName[], rounds: number, random: Random): DisasterName[] {
  const chosen: DisasterName[] = [];
  while (chosen.length < rounds) chosen.push(...random.shuffled(kinds));
  return chosen.slice(0, rounds);
}

export interface SiteOptions<S> {
  readonly name: string;
  /** Keeps the data folder when the run fails. */
  readonly keep: boolean;
  readonly seed: number;
  readonly say: Say;
  readonly start: (dataDir: string, say: Say) => Promise<S>;
  /** Timeout of start and rounds together. */
  readonly timeoutMs: number;
}

/** Returns the timeout of a run of so many rounds. */
export const timeoutMsOf = (rounds: number): number =>
  Math.min(TIMER_MAX_MS, START_TIMEOUT_MS + rounds * ROUND_TIMEOUT_MS);

/** Plays on a site in a folder of its own, within its timeout, and takes it down again whatever happens. */
export async function withSite<S extends { stop(): Promise<void> }>(
  { keep, name, say, seed, start, timeoutMs }: SiteOptions<S>,
  play: (site: S) => Promise<RunResult>,
): Promise<RunResult> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), `spending-control-${name}-`)));
  say(`seed ${String(seed)}, data in ${dataDir}`);
  const over = new AbortController();
  const interrupted = Promise.race([interruption(over.signal), timeout("the run", timeoutMs, over.signal)]);
  let passed = false;
  try {
    const site = await Promise.race([start(dataDir, say), interrupted]);
    try {
      const result = await Promise.race([play(site), interrupted]);
      ({ passed } = result);
      return { ...result, dataDir: keep && !passed ? dataDir : null };
    } finally {
      await Promise.race([site.stop(), timeout("the site's end", STOP_TIMEOUT_MS, over.signal)]);
    }
  } finally {
    over.abort();
    if (passed || !keep) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    else say(`kept: ${dataDir}`);
  }
}

async function timeout(what: string, timeoutMs: number, over: AbortSignal): Promise<never> {
  await sleep(timeoutMs, null, { signal: over });
  throw new Error(`${what} took more than ${String(timeoutMs / 1_000)} s`);
}

/** Rejects when the operator ends the run, so that nothing of it is left running. */
const interruption = (over: AbortSignal): Promise<never> =>
  Promise.race(
    ["SIGINT", "SIGTERM"].map(async (signal) => {
      await once(process, signal, { signal: over });
      throw new Error(`interrupted by ${signal}`);
    }),
  );
