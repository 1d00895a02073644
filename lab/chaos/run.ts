import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Random } from "../random.ts";
import { Deployment } from "./deployment.ts";
import { DISASTERS, disasterOf, type DisasterName } from "./disasters.ts";
import type { ChaosOptions } from "./options.ts";
import type { RunResult } from "./report.ts";
import { playRounds } from "./rounds.ts";
import type { Site } from "./site.ts";

type Say = (line: string) => void;

/** One run: everything up, rounds, a last audit of it all, everything down again, whatever happens. */
export const runChaos = ({ keep, rounds, seed }: ChaosOptions, say: Say): Promise<RunResult> =>
  withSite(
    { name: "chaos", keep, seed, say, start: (dataDir, tell) => Deployment.start(dataDir, tell) },
    (deployment) => {
      const random = new Random(seed);
      const disasters = disasterNames(rounds, random.fork("disasters"));
      return playRounds({
        site: deployment,
        seed,
        random,
        disasters: disasters.map((name) => disasterOf(name, deployment)),
        tenants: 1,
        say,
      });
    },
  );

/** All kinds in turn, each time in another order. */
function disasterNames(rounds: number, random: Random): DisasterName[] {
  const chosen: DisasterName[] = [];
  while (chosen.length < rounds) chosen.push(...random.shuffled(DISASTERS));
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
