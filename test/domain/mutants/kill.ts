import * as fc from "fast-check";
import { Violation } from "../../../scripts/simulation/audit/violation.ts";
import { runs } from "../ledger/actions.ts";
import { LedgerRun } from "../ledger/run.ts";
import type { LedgerDomain } from "../ledger/world.ts";
import { lives } from "../life/actions.ts";
import { type LifeDomain, LifeRun } from "../life/run.ts";

/** What the book said of a fault, and how much had to happen before it did. */
export interface Kill {
  readonly complaint: string;
  readonly after: string;
}

const RUNS_MAX = 3_000;

/** Plays runs of this seed, one after the other, until the book objects; null: it never did. */
function kill<T>(what: fc.Arbitrary<T>, play: (run: T) => void, seed: number): Kill | null {
  const { errorInstance, failed, numRuns } = fc.check(fc.property(what, play), {
    seed,
    numRuns: RUNS_MAX,
    endOnFailure: true,
  });
  if (!failed) return null;
  if (!(errorInstance instanceof Violation)) throw errorInstance;
  return { complaint: errorInstance.message, after: `run ${numRuns}` };
}

export const killInLedger = (domain: () => LedgerDomain, seed: number): Kill | null =>
  kill(runs, (actions) => new LedgerRun(domain()).play(actions), seed);

export const killInLife = (domain: () => LifeDomain, seed: number): Kill | null =>
  kill(lives, (life) => new LifeRun(life, domain()).play(), seed);
