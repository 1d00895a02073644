import * as fc from "fast-check";
import { Violation } from "../simulation/audit/violation.ts";
import { runs } from "../../test/domain/ledger/actions.ts";
import { booksScenes } from "../../test/domain/ledger/books/actions.ts";
import { BooksRun } from "../../test/domain/ledger/books/run.ts";
import { LedgerRun } from "../../test/domain/ledger/run.ts";
import type { LedgerDomain } from "../../test/domain/ledger/world.ts";
import { SpendLimitsRun, steps } from "../../test/domain/spend-limits/run.ts";
import {
  judgeRestricted,
  restrictedPayments,
  type RestrictionsDomain,
} from "../../test/domain/restrictions-model.ts";
import { lives } from "../../test/domain/life/actions.ts";
import { type LifeDomain, LifeRun } from "../../test/domain/life/run.ts";

/** The book's complaint about a fault, and the number of steps before it. */
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

export const killInBooks = (domain: () => LedgerDomain, seed: number): Kill | null =>
  kill(booksScenes, (scene) => new BooksRun(scene, domain()).play(), seed);

export const killInSpendLimits = (domain: () => LedgerDomain, seed: number): Kill | null =>
  kill(steps, (run) => new SpendLimitsRun(domain()).play(run), seed);

export const killInLife = (domain: () => LifeDomain, seed: number): Kill | null =>
  kill(lives, (life) => new LifeRun(life, domain()).play(), seed);

export const killInRestrictions = (domain: () => RestrictionsDomain, seed: number): Kill | null =>
  kill(restrictedPayments, (restricted) => judgeRestricted(restricted, domain()), seed);
