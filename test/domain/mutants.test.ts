import { expect } from "chai";
import { lists } from "./mutants/list.ts";

const TIMEOUT_MS = 300_000;

describe("the book of an agent notices a faulty actor", function () {
  this.timeout(TIMEOUT_MS);

  for (const { kill, mutants, what } of lists) {
    describe(what, () => {
      for (const mutant of mutants) {
        it(`notices that ${mutant.fault}`, async () => {
          const killed = await kill(mutant);
          expect(killed, "went by without a word").to.not.equal(null);
          expect(killed?.complaint).to.include(mutant.complaint);
        });
      }
    });
  }
});
