import * as fc from "fast-check";
import { Violation } from "../../../scripts/simulation/audit/violation.ts";
import { runWorlds } from "../../../scripts/simulation/run.ts";
import { SequenceRun } from "../sequences/run.ts";
import { sequences } from "../sequences/workload.ts";
import type { Mutant } from "./mutant.ts";

/** What the auditor said of a fault, and how much had to happen before it did. */
export interface Kill {
  readonly complaint: string;
  readonly after: string;
}

const SEQUENCES_MAX = 3_000;
const STEPS_MAX = 400_000;

/** Plays sequences of this seed, one after the other, until the auditor objects; null: it never did. */
export function killInSequences({ domain }: Mutant, seed: number): Kill | null {
  const property = fc.property(sequences, (sequence) => new SequenceRun(sequence, domain()).run());
  const { errorInstance, failed, numRuns } = fc.check(property, {
    seed,
    numRuns: SEQUENCES_MAX,
    endOnFailure: true,
  });
  if (!failed) return null;
  if (!(errorInstance instanceof Violation)) throw errorInstance;
  return { complaint: errorInstance.message, after: `sequence ${numRuns}` };
}

/** Runs simulated worlds from this seed on until the auditor objects; null: it never did. */
export async function killInSimulation({ domain }: Mutant, seed: number): Promise<Kill | null> {
  const { failed, steps } = await runWorlds({
    seed,
    stepsMax: STEPS_MAX,
    secondsMax: Infinity,
    domain: domain(),
  });
  const complaint = failed?.violation?.message;
  return complaint === undefined ? null : { complaint, after: `step ${steps}` };
}
