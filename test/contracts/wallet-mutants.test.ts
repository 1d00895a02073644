import { expect } from "chai";
import * as fc from "fast-check";
import type { Hex } from "viem";
import { actions } from "./model/actions.ts";
import { compileMutants, mutants } from "./model/mutants.ts";
import { Simulation, World } from "./model/simulation.ts";
import { type Chain, startChain } from "./support/chain.ts";

/** Fixed, so that the test is about the book and the auditor and not about luck. */
const SEED = 20_261_121;
const RUNS_MAX = 40;

describe("the book and the auditor notice a faulty wallet", () => {
  let chain: Chain | undefined;
  let world: World;
  let bytecodes: ReadonlyMap<string, Hex>;

  before(async () => {
    bytecodes = await compileMutants();
    chain = await startChain();
    world = await World.create(chain);
  });
  after(() => chain?.stop());

  for (const { fault, complaint, seed = SEED } of mutants) {
    it(fault, async () => {
      const bytecode = bytecodes.get(fault);
      if (bytecode === undefined) throw new Error("the mutant compiles");
      const property = fc.asyncProperty(actions, (steps) => Simulation.run(world, steps, bytecode));
      const parameters = { seed, numRuns: RUNS_MAX, endOnFailure: true };
      const { failed, numRuns, errorInstance } = await fc.check(property, parameters);
      expect(failed, `${String(numRuns)} runs went by without a word`).to.equal(true);
      expect(String(errorInstance)).to.match(complaint);
    });
  }
});
