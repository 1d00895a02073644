import { expect } from "chai";
import { ReadyCache } from "../../src/payments/rules/ready-cache.ts";
import { textsOfRules } from "../../src/payments/rules/rules-in-force.ts";
import { readyRules } from "../../src/domain/rules/rules.ts";

/** A rule that takes some 200 KB in memory. */
const large = (name: string) =>
  readyRules([
    {
      id: "rule_x",
      type: "recipient",
      enabled: true,
      params: { anyOf: Array.from({ length: 200 }, (_, index) => `${name} ${index} ${"x".repeat(450)}`) },
    },
  ]);

describe("rules that are kept in memory", () => {
  it("take no more than their bound: those that were not used for longest go first", () => {
    const cache = new ReadyCache(textsOfRules, 1_000_000);
    const first = large("a");
    cache.set("a", first);
    for (const name of ["b", "c", "d"]) cache.set(name, large(name));
    expect(cache.get("a")).to.equal(first);
    cache.set("e", large("e"));
    const kept = ["a", "b", "c", "d", "e"].filter((name) => cache.get(name) !== undefined);
    expect(kept).to.deep.equal(["a", "c", "d", "e"]);
  });

  it("the same ones again take their place once", () => {
    const cache = new ReadyCache(textsOfRules, 1_000_000);
    const first = large("first");
    cache.set("first", first);
    for (let again = 0; again < 20; again += 1) cache.set("again", large("again"));
    expect(cache.get("first")).to.equal(first);
  });
});
