import * as fc from "fast-check";
import { realSubject, Simulation } from "./model/simulation.ts";
import { workload } from "./model/workload.ts";
import { seed } from "./support/seed.ts";

const RUNS = 400;

describe("the agent's actor against an auditor's book", () => {
  it(`whatever comes, in whatever order: limits hold, every reservation ends once, the books agree (TEST_SEED=${seed})`, () => {
    fc.assert(
      fc.property(workload, (actions) => new Simulation(realSubject).run(actions)),
      { seed, numRuns: RUNS },
    );
  });
});
