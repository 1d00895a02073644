import { expect } from "chai";
import { TimeoutError } from "../../src/lib/with-timeout.ts";
import { Arrival, Deadline } from "../../src/lib/deadline.ts";

const never = <T>(): Promise<T> => new Promise<T>(() => undefined);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function rejection(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

/** The deadline of a request that has been here so long, as it is at that moment. */
const at = (boundMs: number, elapsedMs: number): Deadline => new Deadline(boundMs, { elapsedMs });

describe("a request's deadline", () => {
  it("is one for the whole request: what was spent before counts", () => {
    expect(at(3_500, 3_000).leftMs).to.equal(500);
    expect([at(3_500, 3_499).isOver, at(3_500, 3_500).isOver]).to.deep.equal([false, true]);
  });

  it("what takes longer is not waited for, and what is done in time is answered as it ended", async () => {
    expect(await at(60_000, 0).hold(Promise.resolve("done"))).to.equal("done");
    const own = new Error("own");
    expect(await rejection(at(60_000, 0).hold(Promise.reject(own)))).to.equal(own);
    expect(await rejection(new Deadline(20, new Arrival()).hold(never()))).to.be.instanceOf(TimeoutError);
    expect(await rejection(at(20, 21).hold(never()))).to.be.instanceOf(TimeoutError);
  });

  it("a handler's wait ends before the answer is due, so that it is still answered", () => {
    expect(at(3_500, 1_000).spareMs).to.be.within(1_000, 2_000);
    expect(at(3_500, 3_300).spareMs).to.equal(0);
  });

  it("moved while it is waited for, it holds until then; it never comes earlier", async () => {
    const deadline = new Deadline(200, new Arrival());
    const held = deadline.hold(never());
    deadline.moveTo(500);
    deadline.moveTo(300);
    expect(await rejection(held)).to.be.instanceOf(TimeoutError);
    expect(deadline.elapsedMs).to.be.at.least(500);
  });

  it("counts from the arrival, but not what the caller takes to send the rest", async () => {
    const began = performance.now();
    const arrival = new Arrival();
    await pause(50);
    const before = arrival.elapsedMs;
    await arrival.excluding(pause(500));
    expect(before).to.be.at.least(49);
    expect(arrival.elapsedMs).to.be.at.least(before);
    // A timer may be a millisecond early.
    expect(arrival.elapsedMs).to.be.at.most(performance.now() - began - 499);
  });
});
