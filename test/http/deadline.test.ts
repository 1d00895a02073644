import { expect } from "chai";
import { NotInTime } from "../../activities/within.ts";
import { Arrival, Deadline } from "../../server/deadline.ts";

const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

async function rejection(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

const after = (boundMs: number, elapsedMs = 0): Deadline => {
  const arrivedAt = performance.now() - elapsedMs;
  return new Deadline(boundMs, {
    get elapsedMs() {
      return performance.now() - arrivedAt;
    },
  });
};

describe("a request's deadline", () => {
  it("is one for the whole request: what was spent before counts", () => {
    const deadline = after(3_500, 3_000);
    expect(deadline.leftMs).to.be.within(400, 500);
    expect(after(3_500, 4_000).isOver).to.equal(true);
  });

  it("what takes longer is not waited for, and what is done in time is answered as it ended", async () => {
    expect(await after(60_000).hold(Promise.resolve("done"))).to.equal("done");
    expect(await rejection(after(60_000).hold(Promise.reject(new Error("own"))))).to.include({
      message: "own",
    });
    expect(await rejection(after(20).hold(never()))).to.be.instanceOf(NotInTime);
    expect(await rejection(after(20, 21).hold(never()))).to.be.instanceOf(NotInTime);
  });

  it("a handler's wait ends before the answer is due, so that it is still answered", () => {
    const deadline = after(3_500, 1_000);
    expect(deadline.spareMs)
      .to.be.above(1_000)
      .and.below(deadline.leftMs - 500);
    expect(after(3_500, 3_300).spareMs).to.equal(0);
  });

  it("moved while it is waited for, it holds until then; it never comes earlier", async () => {
    const deadline = after(20);
    const held = deadline.hold(never());
    deadline.moveTo(120);
    deadline.moveTo(50);
    const began = performance.now();
    expect(await rejection(held)).to.be.instanceOf(NotInTime);
    expect(performance.now() - began).to.be.above(90);
    expect(deadline.isOver).to.equal(true);
  });

  it("counts from the arrival, but not what the caller takes to send the rest", async () => {
    const arrival = new Arrival();
    const deadline = new Deadline(1_000, arrival);
    await arrival.aside(new Promise((resolve) => setTimeout(resolve, 60)));
    expect(deadline.leftMs).to.be.above(950);
    const began = arrival.elapsedMs;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(arrival.elapsedMs - began).to.be.at.least(55);
  });
});
