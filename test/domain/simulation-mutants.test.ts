import { expect } from "chai";
import { runWorlds } from "../../scripts/simulation/run.ts";
import { mutants } from "./simulation/mutants.ts";

/** Fixed, so that the test is about the auditor and not about luck. */
const SEED = 20_261_122;
const STEPS_MAX = 2_000_000;
const TIMEOUT_MS = 120_000;

describe("the simulation's auditor", function () {
  this.timeout(TIMEOUT_MS);

  it("has nothing to say of the domain as it is", async () => {
    const options = { seed: SEED, stepsMax: 200_000, secondsMax: Infinity };
    const { counts, failed } = await runWorlds(options);
    expect(failed?.violation?.message ?? null).to.equal(null);
    // And not because nothing happened.
    for (const what of ["approved", "reversed", "reserve refused", "recheck granted", "crashes", "at rest"]) {
      expect(counts[what], what).to.be.greaterThan(0);
    }
  });

  for (const { domain, fault } of mutants) {
    it(`notices that ${fault}`, async () => {
      const options = { seed: SEED, stepsMax: STEPS_MAX, secondsMax: Infinity, domain: domain() };
      const { failed, steps } = await runWorlds(options);
      expect(failed, `${String(steps)} steps went by without a word`).to.not.equal(null);
    });
  }
});
