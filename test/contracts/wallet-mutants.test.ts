import { expect } from "chai";
import * as fc from "fast-check";
import type { Hex } from "viem";
import { seed } from "../support/seed.ts";
import { someOrAll } from "../support/soak.ts";
import { actions } from "./model/actions.ts";
import { compileMutants, mutants } from "./model/mutants.ts";
import { Simulation, World } from "./model/simulation.ts";
import { type Chain, startChain } from "./support/chain.ts";

/** Fixed, so that the test is about the book and the auditor and not about luck. */
const SEED = 20_261_121;
const RUNS_MAX = 40;
/** Of each run; every one of them is noticed in `npm run soak`. */
const MUTANTS = 6;

describe(`the book and the auditor notice a faulty wallet (TEST_SEED=${String(seed)})`, () => {
  let chain: Chain | undefined;
  let world: World;
  let bytecodes: ReadonlyMap<string, Hex>;

  before(async () => {
    bytecodes = await compileMutants();
    chain = await startChain();
    world = await World.create(chain);
  });
  after(() => chain?.stop());

  for (const { fault, complaint, seed: runsSeed = SEED } of someOrAll(mutants, MUTANTS)) {
    it(fault, async () => {
      const bytecode = bytecodes.get(fault);
      if (bytecode === undefined) throw new Error("the mutant compiles");
      const property = fc.asyncProperty(actions, (steps) => Simulation.run(world, steps, bytecode));
      const parameters = { seed: runsSeed, numRuns: RUNS_MAX, endOnFailure: true };
      const { failed, numRuns, errorInstance } = await fc.check(property, parameters);
      expect(failed, `${String(numRuns)} runs went by without a word`).to.equal(true);
      expect(String(errorInstance)).to.match(complaint);
    });
  }
});
