import { expect } from "chai";
import { DeliveryThrottle } from "../../src/webhooks/delivery/throttle.ts";
import { times } from "../support/world.ts";

const SECONDS = 10;

/** Deliveries begun in some seconds of looks every 100 ms that begin all that they may, up to 50 a look. */
function begunIn(
  throttle: DeliveryThrottle,
  demand: { load: number; paymentsPerSecond: number },
  fromSeconds = 0,
): number {
  return times(SECONDS * 10, (index) => index).reduce((sum, index) => {
    const begun = Math.min(50, throttle.allowance(demand, fromSeconds * 1_000 + (index + 1) * 100));
    throttle.begun(begun);
    return sum + begun;
  }, 0);
}

describe("the pace of webhook deliveries", () => {
  const rows = [
    { demand: { load: 0.5, paymentsPerSecond: 500 }, each: 500, why: "there is room for both" },
    { demand: { load: 1, paymentsPerSecond: 0 }, each: 500, why: "deliveries alone make it busy" },
    { demand: { load: 1, paymentsPerSecond: 4 }, each: 500, why: "few payments do not make it busy" },
    { demand: { load: 1, paymentsPerSecond: 30 }, each: 5, why: "payments come first" },
    { demand: { load: 0.9, paymentsPerSecond: 200 }, each: 30, why: "a part of the payments' rate" },
  ];
  for (const { demand, each, why } of rows) {
    const { load, paymentsPerSecond } = demand;
    it(`load ${load}, ${paymentsPerSecond} payments/s: ${each} deliveries/s: ${why}`, () => {
      expect(begunIn(new DeliveryThrottle(0), demand)).to.equal(each * SECONDS);
    });
  }

  it("an event for many endpoints is begun whole, and made up for", () => {
    const throttle = new DeliveryThrottle(0);
    const demand = { load: 1, paymentsPerSecond: 30 };
    expect(throttle.allowance(demand, 400)).to.equal(2);
    throttle.begun(12);
    expect(throttle.allowance(demand, 2_200)).to.equal(0);
    expect(throttle.allowance(demand, 2_800)).to.equal(2);
  });

  it("what was begun while nothing was in its way is no debt once something is", () => {
    const throttle = new DeliveryThrottle(0);
    expect(throttle.allowance({ load: 0.2, paymentsPerSecond: 0 }, 100)).to.equal(Infinity);
    throttle.begun(1_000);
    expect(begunIn(throttle, { load: 1, paymentsPerSecond: 30 })).to.be.within(48, 50);
  });

  it("what was not used is not saved up", () => {
    const throttle = new DeliveryThrottle(0);
    const demand = { load: 1, paymentsPerSecond: 30 };
    expect(throttle.allowance(demand, 60_000)).to.equal(5);
    throttle.begun(300);
    expect(throttle.allowance({ load: 0.2, paymentsPerSecond: 0 }, 60_100)).to.equal(Infinity);
    expect(throttle.allowance(demand, 60_500)).to.equal(2);
  });

  it("once the load falls they come back by and by, while payments go on", () => {
    const throttle = new DeliveryThrottle(0);
    begunIn(throttle, { load: 1, paymentsPerSecond: 40 });
    const begun = begunIn(throttle, { load: 0.7, paymentsPerSecond: 40 }, SECONDS);
    expect(begun).to.be.within(1_500, 3_500);
    expect(throttle.allowance({ load: 0.7, paymentsPerSecond: 40 }, 2_000 * SECONDS + 100)).to.equal(
      Infinity,
    );
  });

  it("they come back at once when there are no payments to give way to", () => {
    const throttle = new DeliveryThrottle(0);
    begunIn(throttle, { load: 1, paymentsPerSecond: 40 });
    expect(throttle.dependsOnPayments(0.2)).to.equal(true);
    expect(throttle.allowance({ load: 0.9, paymentsPerSecond: 1 }, 1_000 * SECONDS + 100)).to.equal(Infinity);
    expect(throttle.dependsOnPayments(0.2)).to.equal(false);
  });
});
