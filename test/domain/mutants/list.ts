import { capMutants } from "./caps.ts";
import { type Kill, killInSequences, killInSimulation } from "./kill.ts";
import { lifeMutants } from "./life.ts";
import type { Mutant } from "./mutant.ts";
import { paymentMutants } from "./payments.ts";

/** Fixed, so that the tests are about the auditor and not about luck. */
const SEED = 20_261_121;

export interface Listed {
  readonly what: string;
  readonly mutants: readonly Mutant[];
  readonly kill: (mutant: Mutant) => Promise<Kill | null>;
}

const inSequences = (mutant: Mutant): Promise<Kill | null> =>
  Promise.resolve(killInSequences(mutant, mutant.seed ?? SEED));

/** All faults, with who drives the domain into each. */
export const lists: readonly Listed[] = [
  { what: "payments, in sequences", mutants: paymentMutants, kill: inSequences },
  { what: "keys and life, in sequences", mutants: lifeMutants, kill: inSequences },
  {
    what: "caps, in the simulation",
    mutants: capMutants,
    kill: (mutant) => killInSimulation(mutant, mutant.seed ?? SEED),
  },
];
