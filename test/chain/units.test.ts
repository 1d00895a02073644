import { expect } from "chai";
import { getAddress } from "viem";
import { centsOf, mcOfUnits, unitsOf, unitsOfMc } from "../../src/chain/units.ts";
import { isAddress, withChecksum } from "../../src/domain/address.ts";
import { mirroredLimit } from "../../src/domain/wallet/spending-limit.ts";
import { newId, POLICY, randomAddress } from "./support.ts";

const CENTS_MAX = 1e12;

describe("money on the chain, in the token's units", () => {
  for (const [decimals, factor] of [
    [2, 1n],
    [6, 10_000n],
    [18, 10_000_000_000_000_000n],
  ] as const) {
    it(`cents in ${String(decimals)} decimals convert and back without loss, up to ten billion dollars`, () => {
      for (const cents of [0, 1, 99, 100, 101, 123_456_789, CENTS_MAX - 1, CENTS_MAX]) {
        expect(unitsOf(cents, decimals)).to.equal(BigInt(cents) * factor);
        expect(centsOf(unitsOf(cents, decimals), decimals)).to.equal(cents);
      }
    });
  }

  it("less than a cent is not counted, so no more is ever seen than can be spent", () => {
    expect(centsOf(19_999n, 6)).to.equal(1);
    expect(centsOf(9_999n, 6)).to.equal(0);
    expect(centsOf(10n ** 18n - 1n, 18)).to.equal(99);
  });

  it("thousandths of a cent round up in a token that can't hold them, and in their count", () => {
    expect(unitsOfMc(1, 6)).to.equal(10n);
    expect(unitsOfMc(1_500, 2)).to.equal(2n);
    expect(unitsOfMc(1, 18)).to.equal(10n ** 13n);
    expect(mcOfUnits(1_000n, 6)).to.equal(100);
    expect([mcOfUnits(11n, 6), mcOfUnits(10n, 6), mcOfUnits(3n, 2)]).to.deep.equal([2, 1, 3_000]);
  });

  it("a token that cannot hold cents is refused", () => {
    for (const decimals of [0, 1]) expect(() => unitsOf(1, decimals)).to.throw(RangeError);
    expect(() => centsOf(1n, 1)).to.throw(RangeError);
  });

  it("a fraction of a cent is refused and not rounded", () => {
    expect(() => unitsOf(1.5, 6)).to.throw(RangeError);
  });
});

describe("the limit that mirrors a policy", () => {
  const rows: readonly (readonly [budget: number, daily: number | null, cap: number, period: number])[] = [
    [5_000, null, 5_000, 0],
    [5_000, 700, 700, 86_400],
    [5_000, 5_000, 5_000, 86_400],
    [500, 700, 500, 86_400],
    [5_000, 0, 0, 86_400],
    [0, null, 0, 0],
  ];
  for (const [budgetCents, dailySpendLimitCents, capCents, periodSeconds] of rows) {
    it(`budget ${String(budgetCents)}, daily ${String(dailySpendLimitCents)}: ${String(capCents)} in ${String(periodSeconds)} s`, () => {
      const policy = { ...POLICY, budgetCents, dailySpendLimitCents };
      expect(mirroredLimit(policy)).to.deep.equal({ capCents, periodSeconds });
    });
  }
});

describe("addresses", () => {
  it("one that is shown has the checksum of EIP-55, however it was given", () => {
    for (let count = 0; count < 50; count += 1) {
      const address = randomAddress();
      expect(withChecksum(address.toLowerCase())).to.equal(getAddress(address));
      expect(withChecksum(address)).to.equal(address);
      expect([isAddress(address), isAddress(address.toLowerCase())]).to.deep.equal([true, true]);
    }
  });

  it("one with a wrong checksum is none", () => {
    const address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    expect(isAddress(address)).to.equal(true);
    expect(isAddress(address.replace("aA", "AA"))).to.equal(false);
    for (const wrong of ["", "0x", newId("txn"), address.slice(0, -1), `${address}0`]) {
      expect(isAddress(wrong)).to.equal(false);
    }
  });
});
