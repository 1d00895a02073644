import { expect } from "chai";
import { runWorlds } from "../../lab/simulation/run.ts";
import { simulationFaults } from "./support/simulation-faults.ts";

/** Fixed, so that whether a fault is noticed is no matter of luck. After other changes of the simulation a later world may be the one that notices. */
const SEED = 20_261_122;
const STEPS_MAX = 400_000;
const TIMEOUT_MS = 300_000;

describe("the simulation's auditor notices a faulty domain", function () {
  this.timeout(TIMEOUT_MS);

  for (const { complaint, domain, fault, seed = SEED } of simulationFaults) {
    it(`notices: ${fault}`, async () => {
      const { failed } = await runWorlds({
        seed,
        stepsMax: STEPS_MAX,
        secondsMax: Infinity,
        domain: domain(),
      });
      expect(failed, "went by without a word").not.to.equal(null);
      expect(failed?.violation?.message).to.include(complaint);
    });
  }
});
