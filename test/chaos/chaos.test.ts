import { expect } from "chai";
import { z } from "zod";
import { Child, cleanEnvironment } from "../support/process.ts";
import { seed } from "../support/seed.ts";

/** One disaster; the long runs are `npm run chaos` and `npm run soak`. */
const ROUNDS = 1;
const RUN_MS = 900_000;
const STOPPED_MS = 120_000;

const result = z.object({
  seed: z.number(),
  passed: z.boolean(),
  payments: z.number(),
  kills: z.number(),
  differences: z.array(z.string()),
  rounds: z.array(z.object({ disaster: z.string(), differences: z.array(z.string()) })),
});

describe("chaos", function () {
  this.timeout(RUN_MS + STOPPED_MS + 10_000);

  it(`after a disaster under payments the books agree to the cent (TEST_SEED=${String(seed)})`, async () => {
    const args = ["--rounds", String(ROUNDS), "--seed", String(seed), "--json"];
    const child = Child.node("lab/chaos.ts", args, cleanEnvironment());
    // Told to end, it ends what it has started; killed, it could not.
    const tooLong = setTimeout(() => child.signal("SIGTERM"), RUN_MS);
    try {
      const { code } = await child.exit(RUN_MS + STOPPED_MS);
      expect(child.stdout, child.stderr).not.to.equal("");
      const { differences, kills, passed, payments, rounds } = result.parse(JSON.parse(child.stdout));
      const found = [...differences, ...rounds.flatMap((round) => round.differences)];
      expect(found, `seed ${String(seed)}\n${child.stderr}`).to.deep.equal([]);
      expect({ code, passed, rounds: rounds.length }).to.deep.equal({
        code: 0,
        passed: true,
        rounds: ROUNDS,
      });
      // A disturbed line, a wrong clock and the like kill no process.
      const isKill = rounds.some(({ disaster }) => disaster.startsWith("kill -9"));
      expect(kills > 0, rounds.map(({ disaster }) => disaster).join()).to.equal(isKill);
      // How many is the machine's matter.
      expect(payments).to.be.greaterThan(0);
    } finally {
      clearTimeout(tooLong);
    }
  });
});
