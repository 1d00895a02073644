import * as fc from "fast-check";
import { shortOrSoak } from "../support/soak.ts";
import { seed } from "../support/seed.ts";
import { actions } from "./model/actions.ts";
import { Simulation, World } from "./model/simulation.ts";
import { type Chain, startChain } from "./support/chain.ts";

const RUNS = shortOrSoak(4, 1_000);
/** On a machine that is busy with other things, fewer runs than that must do. */
const RUNS_MS_MAX = shortOrSoak(60_000, 3_000_000);

describe("an agent's wallet against a book of its payments", () => {
  let chain: Chain | undefined;
  let world: World;
  before(async () => {
    chain = await startChain();
    world = await World.create(chain);
  });
  after(() => chain?.stop());

  it(`caps, unique ids, rights, balances hold for any calls at any time (TEST_SEED=${seed})`, async function () {
    this.timeout(2 * RUNS_MS_MAX);
    await fc.assert(
      fc.asyncProperty(actions, (steps) => Simulation.run(world, steps)),
      { seed, numRuns: RUNS, interruptAfterTimeLimit: RUNS_MS_MAX },
    );
  });
});
