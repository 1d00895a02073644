import { expect } from "chai";
import { assert, bigInt, property } from "fast-check";
import { offeredFor, raiseOf } from "../../src/chain/fees.ts";
import { seed } from "../support/seed.ts";

const GWEI = 10n ** 9n;
const UP_TO = 500n * GWEI;
const priceOf = (baseFeePerGas: bigint, tipPerGas = GWEI) => ({ baseFeePerGas, tipPerGas });
const fees = bigInt({ min: 0n, max: 2_000n * GWEI });

describe("what is offered for gas", () => {
  it("three base fees and the tip; a rise to twice the base fee needs nothing new", () => {
    const before = offeredFor(priceOf(10n * GWEI), UP_TO);
    expect(before).to.deep.equal({ maxFeePerGas: 31n * GWEI, maxPriorityFeePerGas: GWEI });
    expect(raiseOf(before, priceOf(20n * GWEI), UP_TO)).to.deep.equal({ kind: "enough" });
  });

  it("where the base fee has risen threefold, what one offers that is signed now", () => {
    const before = offeredFor(priceOf(10n * GWEI), UP_TO);
    expect(raiseOf(before, priceOf(30n * GWEI), UP_TO)).to.deep.equal({
      kind: "raise",
      fees: { maxFeePerGas: 91n * GWEI, maxPriorityFeePerGas: (GWEI * 9n) / 8n },
    });
  });

  it("nothing is raised to what could not pay the base fee, or what nodes would not take", () => {
    const before = { maxFeePerGas: 480n * GWEI, maxPriorityFeePerGas: GWEI };
    expect(raiseOf(before, priceOf(490n * GWEI), UP_TO)).to.deep.equal({ kind: "too dear" });
    const low = { maxFeePerGas: 10n * GWEI, maxPriorityFeePerGas: GWEI };
    expect(raiseOf(low, priceOf(501n * GWEI), UP_TO)).to.deep.equal({ kind: "too dear" });
  });

  it(`whatever the fees, an offer and its tip are within the bound (TEST_SEED=${seed})`, () => {
    assert(
      property(fees, fees, fees, (base, tip, most) => {
        const offered = offeredFor(priceOf(base, tip), most);
        expect(offered.maxFeePerGas <= most).to.equal(true);
        expect(offered.maxPriorityFeePerGas <= offered.maxFeePerGas).to.equal(true);
      }),
      { seed },
    );
  });

  it(`a raise is within the bound, pays the base fee, is an eighth more (TEST_SEED=${seed})`, () => {
    assert(
      property(fees, fees, fees, fees, fees, (maxFee, priority, base, tip, most) => {
        const before = { maxFeePerGas: maxFee, maxPriorityFeePerGas: priority < maxFee ? priority : maxFee };
        const said = raiseOf(before, priceOf(base, tip), most);
        if (said.kind !== "raise") return;
        const { maxFeePerGas, maxPriorityFeePerGas } = said.fees;
        expect(maxFeePerGas <= most && maxFeePerGas >= base).to.equal(true);
        expect(maxPriorityFeePerGas <= maxFeePerGas).to.equal(true);
        expect(maxFeePerGas * 8n >= before.maxFeePerGas * 9n).to.equal(true);
        expect(maxPriorityFeePerGas * 8n >= before.maxPriorityFeePerGas * 9n).to.equal(true);
      }),
      { seed },
    );
  });
});
