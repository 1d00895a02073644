import * as fc from "fast-check";
import { seed } from "../../support/seed.ts";
import { isSoak, shortOrSoak } from "../../support/soak.ts";
import { startTestService, type TestService } from "../../support/service.ts";
import { newWorld, organizationKey, times, type World } from "../../support/world.ts";
import { Life, lives } from "./run.ts";

const RUNS = shortOrSoak(7, 250);
/** At the same time, since most of a life is waiting. */
const AT_ONCE = 7;
const WINDOW_SECONDS = 3;

describe("an agent's life on real engines against a small model", function () {
  this.timeout(isSoak ? 3_600_000 : 900_000);
  let service: TestService;
  /** An organization for each of those that run at the same time: minting keys is limited. */
  let worlds: readonly World[];
  before(async () => {
    service = await startTestService({ keyDeliveryWindowSeconds: WINDOW_SECONDS });
    worlds = await Promise.all(times(AT_ONCE, () => newWorld(service)));
    // The first create of all is slow, and a window is short.
    await worlds[0]?.agent();
  });
  after(() => service.stop());

  it(`any calls at any time: one agent, one working key, a final archive (TEST_SEED=${seed})`, async () => {
    const windowMs = WINDOW_SECONDS * 1_000;
    const runs = fc.sample(lives(windowMs), { seed, numRuns: RUNS });
    await Promise.all(
      worlds.map(async (world) => {
        const stranger = await organizationKey(world);
        for (let rounds = runs.pop(); rounds !== undefined; rounds = runs.pop()) {
          const life = await Life.begin(world, windowMs, stranger);
          await life.live(rounds);
        }
      }),
    );
  });
});
