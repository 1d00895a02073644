import { expect } from "chai";
import { BatchLinger } from "../../src/actors/batch-linger.ts";
import { times } from "../support/world.ts";

/** An update of 10 ms has just ended. */
function stage() {
  const clock = { now: 1_000 };
  let pumped = 0;
  const linger = new BatchLinger({ monotonicMs: () => clock.now }, () => (pumped += 1));
  linger.updated(10);
  return { clock, linger, pumped: () => pumped };
}

/** So many that were waited for, of whom so many came again. */
function round(linger: BatchLinger, answering: number, returned: number): number {
  const releases = times(answering, () => linger.answering());
  const leftMs = linger.leftMs(1, 0);
  linger.sent(1 + returned);
  for (const release of releases) release();
  return leftMs;
}

describe("how long a batch waits for more to go with it", () => {
  it("not at all where no caller is about to ask, or being answered", () => {
    expect(stage().linger.leftMs(1, 1_000)).to.equal(0);
  });

  it("2 ms for who is about to ask, from when the first one waits", () => {
    const { clock, linger, pumped } = stage();
    const hasAsked = linger.expecting();
    expect(linger.leftMs(1, 1_000)).to.equal(2);
    clock.now += 2;
    expect(linger.leftMs(1, 1_000)).to.equal(0);
    hasAsked();
    hasAsked();
    expect(pumped(), "told of once").to.equal(1);
  });

  it("as long as an update takes for those being answered, and 2 ms after the last of them", () => {
    const { clock, linger } = stage();
    const isAnswered = linger.answering();
    expect(linger.leftMs(1, 1_000)).to.equal(10);
    clock.now += 4;
    isAnswered();
    expect(linger.leftMs(1, 1_000)).to.equal(2);
    clock.now += 2;
    expect(linger.leftMs(1, 1_000)).to.equal(0);
  });

  it("never longer than 12 ms after an update, however long those take", () => {
    const { linger } = stage();
    for (const _each of times(50, () => null)) linger.updated(500);
    linger.answering();
    expect(linger.leftMs(1, 1_000)).to.equal(12);
  });

  it("not for who does not come again: after 3 times in vain the next 32 batches go at once", () => {
    const { linger } = stage();
    expect(times(3, () => round(linger, 8, 3))).to.deep.equal([10, 10, 10]);
    expect(times(32, () => round(linger, 8, 0))).to.deep.equal(times(32, () => 0));
    expect(times(4, () => round(linger, 8, 8))).to.deep.equal([10, 10, 10, 10]);
  });
});
