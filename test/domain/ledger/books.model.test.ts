import { expect } from "chai";
import * as fc from "fast-check";
import { joined, type RailBooks } from "../../../src/domain/ledger/books.ts";
import { seed } from "../../support/seed.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { booksScenes } from "./books/actions.ts";
import { BooksRun } from "./books/run.ts";

const SECONDS = shortOrSoak(3, 600);
const LAST_RUN_MS = 300_000;
const FIXED_SEED = 20_261_126;
const FIXED_RUNS = 400;

/** What must come up for the property to mean anything. */
const NOTEWORTHY = [
  "armed",
  "denied",
  "asked: granted",
  "asked: ABOVE_PAYMENT",
  "asked: NOT_ACTIVE",
  "asked: LIMIT_EXCEEDED",
  "asked: TOO_LATE",
  "asked: CLOSED",
  "the network stood in",
  "the record was read first",
  "a closed payment was taken back",
  "an account was dropped",
  "an account came back",
  "restored",
  "breach: agent/per_transaction",
  "breach: agent/budget",
  "breach: agent/daily_spend",
  "breach: team/cap",
  "breach: project/cap",
] as const;

const report = (authorization: string): fc.Arbitrary<RailBooks> =>
  fc.record({
    authorization: fc.constant(authorization),
    requests: fc.nat(3),
    authorizedMc: fc.nat(3),
    capturedMc: fc.nat(3),
    creditedMc: fc.nat(3),
    recalledMc: fc.nat(3),
    disputedMc: fc.nat(3),
    isOpen: fc.boolean(),
  });

describe("the books of payments", function () {
  this.timeout(SECONDS * 1_000 + LAST_RUN_MS);

  it("a join of reports is commutative, associative and idempotent", () => {
    const [one, other, third] = [report("a"), report("a"), report("a")];
    fc.assert(
      fc.property(one, other, third, (a, b, c) => {
        expect(joined(a, b)).to.deep.equal(joined(b, a));
        expect(joined(joined(a, b), c)).to.deep.equal(joined(a, joined(b, c)));
        expect(joined(a, a)).to.deep.equal(a);
      }),
      { seed },
    );
  });

  it(`totals are the network's, and only it exceeds a limit, to the cent (TEST_SEED=${String(seed)})`, () => {
    const property = fc.property(booksScenes, (scene) => new BooksRun(scene).play());
    fc.assert(property, { seed, numRuns: Infinity, interruptAfterTimeLimit: SECONDS * 1_000 });
  });

  it("the scenes come to everything that matters", () => {
    const seen = new Map<string, number>();
    const property = fc.property(booksScenes, (scene) => {
      const run = new BooksRun(scene);
      run.play();
      for (const [what, count] of run.tally) seen.set(what, (seen.get(what) ?? 0) + count);
    });
    fc.assert(property, { seed: FIXED_SEED, numRuns: FIXED_RUNS });
    for (const what of NOTEWORTHY) expect(seen.get(what) ?? 0, what).to.be.at.least(1);
  });
});
