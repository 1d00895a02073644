import { expect } from "chai";
import { violationText } from "../../scripts/simulation/report.ts";
import { runWorld, runWorlds } from "../../scripts/simulation/run.ts";
import { seed } from "./support/seed.ts";

/** How long fresh seeds are tried. */
const SECONDS = Number(process.env["SIMULATION_SECONDS"] ?? 60);
const LAST_WORLD_MS = 60_000;

describe("the service in simulated time", function () {
  this.timeout(SECONDS * 1_000 + LAST_WORLD_MS);

  it(`limits hold at every level, and all books agree, whatever crashes, is lost, late or doubled (seeds from ${String(seed)})`, async () => {
    const seeds: number[] = [];
    const { counts, failed, steps } = await runWorlds({
      seed,
      stepsMax: Infinity,
      secondsMax: SECONDS,
      onWorld: (world) => seeds.push(world.seed),
    });
    process.stdout.write(`      ${String(steps)} steps in the worlds of the seeds ${seeds.join(" ")}\n`);
    const violation = failed === null ? null : violationText(failed);
    expect(violation, violation ?? "").to.equal(null);
    for (const what of ["approved", "asked", "replayed", "budget replaced", "crashes", "at rest"]) {
      expect(counts[what], what).to.be.greaterThan(0);
    }
  });

  it(`a seed takes the same course again, to the step (seed ${String(seed)})`, async () => {
    const steps = 12_345;
    expect(await runWorld(seed, steps)).to.deep.equal(await runWorld(seed, steps));
  });
});
