import { expect } from "chai";
import { DeliverySlots, type Slot } from "../../src/webhooks/delivery/slots.ts";
import { times } from "../support/world.ts";

const of = (endpointId: string, organizationId: string, isTest = false) => ({
  endpointId,
  organizationId,
  isTest,
});
const isSlot = (taken: Slot | number): taken is Slot => typeof taken !== "number";

/** Its receiver never answers, so all exchanges with it take 15 s; those that are under way now. */
function hang(slots: DeliverySlots, endpointId: string, organizationId: string): Slot[] {
  const held: Slot[] = [];
  for (const _round of times(40, () => 0)) {
    for (const slot of held.splice(0)) slot.release(15_000);
    for (let slot = slots.take(of(endpointId, organizationId)); isSlot(slot);) {
      held.push(slot);
      slot = slots.take(of(endpointId, organizationId));
    }
  }
  return held;
}

describe("places to send webhooks from", () => {
  it("one endpoint has 8 at most, and leaves the others of its organization theirs", () => {
    const slots = new DeliverySlots(() => 0);
    const taken = times(20, () => slots.take(of("slow", "org")));
    expect(taken.filter(isSlot)).to.have.lengthOf(8);
    expect(isSlot(slots.take(of("quick", "org")))).to.equal(true);
  });

  it("one organization has 32 at most, however many endpoints it has, and others are not held up", () => {
    const slots = new DeliverySlots(() => 0);
    const taken = times(100, (index) => slots.take(of(`endpoint-${index % 10}`, "greedy")));
    expect(taken.filter(isSlot)).to.have.lengthOf(32);
    expect(isSlot(slots.take(of("theirs", "other")))).to.equal(true);
  });

  it("a request that gets none is told to come later than the one before, by what exchanges take", () => {
    let now = 0;
    const slots = new DeliverySlots(() => now);
    hang(slots, "slow", "org");
    now = 1_000;
    const delays = times(100, () => slots.take(of("slow", "org"))).map(Number);
    expect(delays.every((delay, index) => index === 0 || delay >= (delays[index - 1] ?? 0))).to.equal(true);
    expect(delays[0]).to.be.at.least(500);
    // 99 exchanges of 15 s later, 4 beside each other.
    expect((delays.at(-1) ?? 0) - (delays[0] ?? 0)).to.be.within(370_000, 372_000);
  });

  it("once its receiver is well again, no delivery waits for as long as while it hung", () => {
    let now = 0;
    const slots = new DeliverySlots(() => now);
    const held = hang(slots, "recovers", "org");
    for (const _refused of times(500, () => slots.take(of("recovers", "org"))));
    for (const slot of held) slot.release(15_000);
    for (const _quick of times(60, () => 0)) {
      now += 50;
      const slot = slots.take(of("recovers", "org"));
      if (isSlot(slot)) slot.release(50);
    }
    const taken = times(9, () => slots.take(of("recovers", "org")));
    expect(taken.filter(isSlot)).to.have.lengthOf(8);
    expect(taken.at(-1)).to.be.within(500, 10_000);
  });

  it("seven receivers that hang leave places to the healthy ones of their organization", () => {
    const slots = new DeliverySlots(() => 0);
    for (const endpoint of times(7, String)) expect(hang(slots, endpoint, "org")).to.have.lengthOf(4);
    expect(isSlot(slots.take(of("healthy", "org")))).to.equal(true);
  });

  it("receivers that hang have 100 places in all, of however many organizations they are", () => {
    const slots = new DeliverySlots(() => 0);
    const held = times(50, (index) => hang(slots, `endpoint-${index}`, `org-${index}`)).flat();
    expect(held).to.have.lengthOf(100);
    expect(isSlot(slots.take(of("healthy", "org-1")))).to.equal(true);
  });

  it("a test waits behind nothing that hangs, and an organization makes four at a time", () => {
    const slots = new DeliverySlots(() => 0);
    for (const endpoint of times(8, String)) hang(slots, endpoint, "org");
    expect(times(6, () => slots.take(of("0", "org", true))).filter(isSlot)).to.have.lengthOf(4);
    expect(isSlot(slots.take(of("0", "other", true)))).to.equal(true);
  });

  it("a place that was given back is there for the next", () => {
    const slots = new DeliverySlots(() => 0);
    const [first] = times(8, () => slots.take(of("slow", "org"))).filter(isSlot);
    expect(isSlot(slots.take(of("slow", "org")))).to.equal(false);
    first?.release(10);
    expect(isSlot(slots.take(of("slow", "org")))).to.equal(true);
  });
});
