import { expect } from "chai";
import * as fc from "fast-check";
import { mutants } from "./model/mutants.ts";
import { Simulation } from "./model/simulation.ts";
import { workload } from "./model/workload.ts";

/** Fixed, so that the test is about the auditor and not about luck. */
const SEED = 20_261_121;
const RUNS_MAX = 400;

describe("the auditor notices a faulty actor", () => {
  for (const { fault, complaint, subject } of mutants) {
    it(fault, () => {
      const property = fc.property(workload, (actions) => new Simulation(subject).run(actions));
      const parameters = { seed: SEED, numRuns: RUNS_MAX, endOnFailure: true };
      const { failed, numRuns, errorInstance } = fc.check(property, parameters);
      expect(failed, `${numRuns} runs went by without a word`).to.equal(true);
      expect(String(errorInstance)).to.include(complaint);
    });
  }
});
