import * as fc from "fast-check";
import { expect } from "chai";
import { shortOrSoak } from "../../support/soak.ts";
import { seed } from "../../support/seed.ts";
import { SOUND } from "../ledger/world.ts";
import { SpendLimitsRun, steps } from "./run.ts";

describe("spend limits, against a book that adds up every payment", () => {
  it(`count and deny as it does, whatever is done, over roll-overs (TEST_SEED=${String(seed)})`, () => {
    let [denials, grants] = [0, 0];
    fc.assert(
      fc.property(steps, (run) => {
        const played = new SpendLimitsRun(SOUND);
        played.play(run);
        denials += played.denials;
        grants += played.grants;
      }),
      { seed, numRuns: shortOrSoak(120, 60_000) },
    );
    expect(denials).to.be.greaterThan(10);
    expect(grants).to.be.greaterThan(10);
  });
});
