import { expect } from "chai";
import { DeliverySlots, type Slot } from "../../activities/webhooks/slots.ts";
import { times } from "../support/world.ts";

const isSlot = (taken: Slot | number): taken is Slot => typeof taken !== "number";

describe("places to send webhooks from", () => {
  it("one endpoint has 8 at most, and leaves the others of its organization theirs", () => {
    const slots = new DeliverySlots(() => 0);
    const taken = times(20, () => slots.take("slow", "org"));
    expect(taken.filter(isSlot)).to.have.lengthOf(8);
    expect(isSlot(slots.take("quick", "org"))).to.equal(true);
  });

  it("one organization has 32 at most, however many endpoints it has, and others are not held up", () => {
    const slots = new DeliverySlots(() => 0);
    const taken = times(100, (index) => slots.take(`endpoint-${index % 10}`, "greedy"));
    expect(taken.filter(isSlot)).to.have.lengthOf(32);
    expect(isSlot(slots.take("theirs", "other"))).to.equal(true);
  });

  it("whoever gets none is told to come later than the one before, by what exchanges take", () => {
    let now = 0;
    const slots = new DeliverySlots(() => now);
    const held = times(8, () => slots.take("slow", "org")).filter(isSlot);
    // All exchanges with it take 15 s.
    for (const _round of times(40, () => 0)) {
      for (const slot of held.splice(0)) slot.release(15_000);
      held.push(...times(8, () => slots.take("slow", "org")).filter(isSlot));
    }
    now = 1_000;
    const delays = times(500, () => slots.take("slow", "org")).map(Number);
    expect(delays.every((delay, index) => index === 0 || delay >= (delays[index - 1] ?? 0))).to.equal(true);
    expect(delays[0]).to.be.at.least(500);
    // 500 exchanges of 15 s, 8 beside each other.
    expect(delays.at(-1)).to.be.within(500_000, 600_000);
  });

  it("a place that was given back is there for the next", () => {
    const slots = new DeliverySlots(() => 0);
    const [first] = times(8, () => slots.take("slow", "org")).filter(isSlot);
    expect(isSlot(slots.take("slow", "org"))).to.equal(false);
    first?.release(10);
    expect(isSlot(slots.take("slow", "org"))).to.equal(true);
  });
});
