import { expect } from "chai";
import { DeliveryPace } from "../../activities/webhooks/pace.ts";
import { times } from "../support/world.ts";

const SECONDS = 10;

/** Deliveries begun in some seconds of looks every 100 ms that begin all that they may, up to so many a look. */
function begunIn(
  pace: DeliveryPace,
  demand: { load: number; paymentsPerSecond: number },
  aLook = 50,
): number {
  return times(SECONDS * 10, (index) => index).reduce((sum, index) => {
    const begun = Math.min(aLook, pace.allowance(demand, (index + 1) * 100));
    pace.begun(begun);
    return sum + begun;
  }, 0);
}

describe("the pace of webhook deliveries", () => {
  const rows = [
    { demand: { load: 0.5, paymentsPerSecond: 500 }, each: 500, why: "there is room for both" },
    { demand: { load: 1, paymentsPerSecond: 0 }, each: 500, why: "deliveries alone make it busy" },
    { demand: { load: 1, paymentsPerSecond: 4 }, each: 500, why: "few payments do not make it busy" },
    {
      demand: { load: 1, paymentsPerSecond: 30 },
      each: 10,
      why: "payments come first",
    },
    { demand: { load: 0.9, paymentsPerSecond: 200 }, each: 50, why: "a quarter of the payments' rate" },
  ];
  for (const { demand, each, why } of rows) {
    const { load, paymentsPerSecond } = demand;
    it(`load ${load}, ${paymentsPerSecond} payments/s: ${each} deliveries/s: ${why}`, () => {
      expect(begunIn(new DeliveryPace(0), demand)).to.equal(each * SECONDS);
    });
  }

  it("an event for many endpoints is begun whole, and made up for", () => {
    const pace = new DeliveryPace(0);
    const demand = { load: 1, paymentsPerSecond: 30 };
    expect(pace.allowance(demand, 200)).to.equal(2);
    pace.begun(12);
    expect(pace.allowance(demand, 1_100)).to.equal(0);
    expect(pace.allowance(demand, 1_400)).to.equal(2);
  });

  it("what was begun while nothing was in its way is no debt once something is", () => {
    const pace = new DeliveryPace(0);
    expect(pace.allowance({ load: 0.2, paymentsPerSecond: 0 }, 100)).to.equal(Infinity);
    pace.begun(1_000);
    expect(begunIn(pace, { load: 1, paymentsPerSecond: 30 })).to.be.within(98, 100);
  });

  it("what was not used is not saved up, and is forgotten once there is room", () => {
    const pace = new DeliveryPace(0);
    const demand = { load: 1, paymentsPerSecond: 30 };
    expect(pace.allowance(demand, 60_000)).to.equal(10);
    pace.begun(300);
    expect(pace.allowance({ ...demand, load: 0.2 }, 60_100)).to.equal(Infinity);
    expect(pace.allowance(demand, 60_300)).to.equal(2);
  });
});
