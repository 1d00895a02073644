import { expect } from "chai";
import * as fc from "fast-check";
import { mutants } from "./life/mutants.ts";
import { LifeSimulation } from "./life/simulation.ts";
import { life } from "./life/workload.ts";

/** Fixed, so that the test is about the model and not about luck. */
const SEED = 20_261_121;
const RUNS_MAX = 2_000;

describe("the model of an agent's life notices a faulty actor", () => {
  for (const { complaint, fault, subject } of mutants) {
    it(fault, () => {
      const property = fc.property(life, (lived) => new LifeSimulation(subject, lived).run(lived));
      const parameters = { seed: SEED, numRuns: RUNS_MAX, endOnFailure: true };
      const { errorInstance, failed, numRuns } = fc.check(property, parameters);
      expect(failed, `${numRuns} runs went by without a word`).to.equal(true);
      expect(String(errorInstance)).to.include(complaint);
    });
  }
});
