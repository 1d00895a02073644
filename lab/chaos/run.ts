import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Random } from "../random.ts";
import { playCardRounds } from "./card-rounds.ts";
import { Deployment } from "./deployment.ts";
import { DISASTERS, disasterOf, type DisasterName, WITHOUT_CHAIN } from "./disasters.ts";
import type { ChaosOptions } from "./options.ts";
import type { RunResult } from "./report.ts";
import { playRounds } from "./rounds.ts";
import type { Site } from "./site.ts";

type Say = (line: string) => void;

/** One run: everything up, rounds, a last audit of it all, everything down again, whatever happens. */
export const runChaos = ({ cards, keep, rounds, seed }: ChaosOptions, say: Say): Promise<RunResult> =>
  withSite(
    { name: "chaos", keep, seed, say, start: (dataDir, tell) => Deployment.start(dataDir, tell) },
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
}

/** Plays on a site in a folder of its own, and takes it down again whatever happens. */
export async function withSite<S extends Site & { stop(): Promise<void> }>(
  { keep, name, say, seed, start }: SiteOptions<S>,
  play: (site: S) => Promise<RunResult>,
): Promise<RunResult> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), `spending-control-${name}-`)));
  say(`seed ${String(seed)}, data in ${dataDir}`);
  const interrupted = interruption();
  let passed = false;
  try {
    const site = await Promise.race([start(dataDir, say), interrupted]);
    try {
      const result = await Promise.race([play(site), interrupted]);
      ({ passed } = result);
      return { ...result, dataDir: keep && !passed ? dataDir : null };
    } finally {
      await site.stop();
    }
  } finally {
    if (passed || !keep) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    else say(`kept: ${dataDir}`);
  }
}

/** Rejects when the operator ends the run, so that nothing of it is left running. */
function interruption(): Promise<never> {
  return new Promise((_resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => reject(new Error(`interrupted by ${signal}`)));
    }
  });
}
