import { expect } from "chai";
import { lists } from "./mutants/list.ts";

const TIMEOUT_MS = 300_000;

describe("the books notice a faulty domain", function () {
  this.timeout(TIMEOUT_MS);

  for (const { faults, what } of lists) {
    describe(what, () => {
      for (const { complaint, fault, kill } of faults) {
        it(`notices: ${fault}`, () => {
          const killed = kill();
          expect(killed, "went by without a word").to.not.equal(null);
          expect(killed?.complaint).to.include(complaint);
        });
      }
    });
  }
});
