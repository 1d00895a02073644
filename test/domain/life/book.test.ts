import { expect } from "chai";
import * as fc from "fast-check";
import { seed } from "../../support/seed.ts";
import { isSoak, shortOrSoak } from "../../support/soak.ts";
import { lives } from "./actions.ts";
import { LifeRun } from "./run.ts";

/** How long fresh lives are tried; a longer run sets more. */
const SECONDS = shortOrSoak(1, 300);
const LAST_LIFE_MS = 300_000;

/** Fixed, so that whether the lives get everywhere is no matter of luck, or of a slow machine. */
const FIXED_SEED = 20_261_121;
const FIXED_RUNS = 100;
const FIXED_SEEDS_MAX = 15;
const SEEN_MIN = 5;

/** What must come up for the property to mean anything. */
const NOTEWORTHY = [
  "key accepted",
  "key refused",
  "key minted",
  "key revoked",
  "second key refused",
  "no key to revoke",
  "archived",
  "archived before",
  "archived by a machine",
  "refused to a machine, since it was used",
  "MACHINE_ARCHIVE_DENIED",
  "KEY_STILL_DELIVERABLE",
  "KEY_DELIVERY_UNPROVEN",
  "BALANCE_UNVERIFIABLE",
  "proven",
  "not proven",
  "not proven in the window",
] as const;

describe("an agent's life, whatever is asked of it, against the book of it", function () {
  this.timeout(SECONDS * 1_000 + LAST_LIFE_MS);

  it(`keys, proofs, archive and their events are always right (TEST_SEED=${seed})`, () => {
    let commands = 0;
    const property = fc.property(lives, (life) => {
      new LifeRun(life).play();
      commands += life.actions.length;
    });
    const numRuns = Number.MAX_SAFE_INTEGER;
    fc.assert(property, { seed, numRuns, interruptAfterTimeLimit: SECONDS * 1_000 });
    process.stdout.write(`      ${commands} commands\n`);
  });

  // A test of the workload, which changes seldom.
  if (isSoak)
    it("the lives come to every answer that matters", () => {
      const seen = new Map<string, number>(NOTEWORTHY.map((what) => [what, 0]));
      const rare = (): readonly string[] => NOTEWORTHY.filter((what) => (seen.get(what) ?? 0) < SEEN_MIN);
      for (let batch = 0; batch < FIXED_SEEDS_MAX && rare().length > 0; batch += 1) {
        for (const life of fc.sample(lives, { seed: FIXED_SEED + batch, numRuns: FIXED_RUNS })) {
          const run = new LifeRun(life);
          run.play();
          for (const what of run.tally.keys()) seen.set(what, (seen.get(what) ?? 0) + 1);
        }
      }
      expect(rare()).to.deep.equal([]);
    });
});
