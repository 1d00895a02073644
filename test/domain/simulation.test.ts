import { expect } from "chai";
import { violationText } from "../../lab/simulation/report.ts";
import { runWorld, runWorlds } from "../../lab/simulation/run.ts";
import { isSoak, shortOrSoak } from "../support/soak.ts";
import { seed } from "../support/seed.ts";

/** Steps in which a world rests, and its books are compared, some ten times; in the soak as many worlds as fit. */
const STEPS = shortOrSoak(15_000, Infinity);
const SECONDS = shortOrSoak(Infinity, 600);
const LAST_WORLD_MS = 300_000;

/** Fixed, so that whether the workload gets everywhere is no matter of luck. Two are enough; the others are in reserve. */
const FIXED_SEEDS = [8, 12, 1, 2, 3];
const FIXED_STEPS = 25_000;

/** What must come up for the simulation to mean anything. */
const NOTEWORTHY = [
  "sending",
  "held",
  "approved",
  "reversed",
  "known key: replayed",
  "known key: recorded",
  "look up",
  "asked again",
  "stale rules",
  "flagged: velocity",
  "payment by a dead key",
  "TEAM_CAP_EXCEEDED",
  "PROJECT_CAP_EXCEEDED",
  "SPEND_LIMIT_EXCEEDED",
  "TEAM_SPEND_LIMIT_EXCEEDED",
  "PROJECT_SPEND_LIMIT_EXCEEDED",
  "budget replaced",
  "budget by team",
  "team stale by an agent's budget",
  "project stale by a team's cap",
  "pause answered",
  "fenced",
  "stop answered",
  "keys revoked by a stop",
  "a revoked key did not come back",
  "archive answered",
  "revocation answered",
  "caps answered",
  "rules answered",
  "raise: raised",
  "raise: again",
  "raise: stale",
  "raise: raise_not_needed",
  "raised: team",
  "raised: project",
  "restrictions answered",
  "RECIPIENT_NOT_ALLOWED",
  "closed with payments on hold",
  "clocks set back",
  "windows closed",
  "sweeps",
  "crashes",
  "stalls",
  "networks read",
  "taken back",
  "booked: account_dropped",
  "breach: project/cap",
  "dry run",
  "at rest",
] as const;

describe("the service in simulated time", function () {
  this.timeout(shortOrSoak(0, SECONDS * 1_000) + LAST_WORLD_MS);

  it(`limits hold and all books agree, whatever crashes or is lost (TEST_SEED=${String(seed)})`, async () => {
    const seeds: number[] = [];
    const { failed, steps } = await runWorlds({
      seed,
      stepsMax: STEPS,
      secondsMax: SECONDS,
      onWorld: (world) => seeds.push(world.seed),
    });
    process.stdout.write(`      ${String(steps)} steps in the worlds of the seeds ${seeds.join(" ")}\n`);
    const violation = failed === null ? null : violationText(failed);
    expect(violation, violation ?? "").to.equal(null);
  });

  // A test of the workload, which changes seldom.
  if (isSoak)
    it("the worlds come to everything that matters", async () => {
      const missing = new Set<string>(NOTEWORTHY);
      for (const fixed of FIXED_SEEDS) {
        const { counts, violation } = await runWorld(fixed, FIXED_STEPS);
        expect(violation).to.equal(null);
        for (const [what, count] of Object.entries(counts)) if (count > 0) missing.delete(what);
        if (missing.size === 0) break;
      }
      expect([...missing]).to.deep.equal([]);
    });

  it(`a seed takes the same course again, to the step (TEST_SEED=${String(seed)})`, async () => {
    const steps = 2_000;
    expect(await runWorld(seed, steps)).to.deep.equal(await runWorld(seed, steps));
  });
});
