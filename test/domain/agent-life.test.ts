import { expect } from "chai";
import * as fc from "fast-check";
import { LifeSimulation, realSubject } from "./life/simulation.ts";
import { life } from "./life/workload.ts";
import { seed } from "./support/seed.ts";

const RUNS = 10_000;
/** Far below what any seed brings, so that only a workload that no longer gets there is noticed. */
const SEEN_MIN = 50;

/** What must have come up often for the property to mean anything. */
const NOTEWORTHY = [
  "authenticated true",
  "authenticated false",
  "archive true",
  "archive false",
  "refused MACHINE_ARCHIVE_DENIED",
  "refused KEY_STILL_DELIVERABLE",
  "refused KEY_DELIVERY_UNPROVEN",
  "refused BALANCE_UNVERIFIABLE",
  "window over true, proven true",
  "window over true, proven false",
  "window over false, proven false",
  "key_exists",
  "no_key",
  "decided held",
  "decided AGENT_PAUSED",
  "payment true denied",
  "payment false expired",
  "archived by a machine",
  "archived with payments on hold",
  "used, so no machine archived it",
];

describe("an agent's life against a model", () => {
  it(`whatever comes, at whatever moment of the window: ${RUNS} lives are as the specification says (TEST_SEED=${seed})`, () => {
    const seen = new Map(NOTEWORTHY.map((words) => [words, 0]));
    const property = fc.property(life, (lived) => {
      const simulation = new LifeSimulation(realSubject, lived);
      simulation.run(lived);
      for (const words of new Set([...simulation.answers, ...simulation.outcomes()])) {
        const times = seen.get(words);
        if (times !== undefined) seen.set(words, times + 1);
      }
    });
    fc.assert(property, { seed, numRuns: RUNS });
    for (const [words, times] of seen) expect(times, words).to.be.at.least(SEEN_MIN);
  });
});
