import { expect } from "chai";
import { concurrentLoader } from "../../src/lib/batch-loader.ts";

describe("look-ups that go together, each for another caller", () => {
  it("one that fails fails its own caller, and no other", async () => {
    const asked: string[] = [];
    const answers = concurrentLoader(async (key) => {
      asked.push(key);
      if (key === "silent") throw new Error("no answer in time");
      return key.toUpperCase();
    });
    const all = await Promise.allSettled(["one", "silent", "two", "one"].map((key) => answers.load(key)));
    const told = all.map((one) => (one.status === "fulfilled" ? one.value : String(one.reason)));
    expect(told).to.deep.equal(["ONE", "Error: no answer in time", "TWO", "ONE"]);
    expect(asked).to.deep.equal(["one", "silent", "two"]);
  });
});
