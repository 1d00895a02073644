import { expect } from "chai";
import { onceASecond } from "../../src/lib/once-a-second.ts";

describe("what /readyz answers", () => {
  it("is looked up once for all who ask at once, and anew after a second, not before", async () => {
    let nowMs = 0;
    let looks = 0;
    const missing = onceASecond(
      () => Promise.resolve([`look ${(looks += 1)}`]),
      () => nowMs,
    );
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => missing()));
    expect(new Set(answers.flat())).to.deep.equal(new Set(["look 1"]));
    nowMs = 999;
    expect(await missing()).to.deep.equal(["look 1"]);
    nowMs = 1_000;
    expect(await missing()).to.deep.equal(["look 2"]);
  });

  it("a look that fails is no later caller's answer", async () => {
    let looks = 0;
    const missing = onceASecond(() => {
      looks += 1;
      return looks === 1 ? Promise.reject(new Error("broken")) : Promise.resolve([]);
    });
    const failures = await Promise.allSettled([missing(), missing()]);
    expect(failures.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    expect(await missing()).to.deep.equal([]);
    expect(looks).to.equal(2);
  });
});
