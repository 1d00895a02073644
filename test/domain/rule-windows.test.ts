import { expect } from "chai";
import { DateTime } from "luxon";
import { someOrAll } from "../support/soak.ts";
import { zoneOffsets } from "../../src/lib/zone-offset.ts";
import { ZoneClocks } from "../../src/payments/rules/zone-offsets.ts";
import { comparedPayment, paymentRules } from "../../src/domain/rules/checks.ts";
import { readyRules, type RuleParams, WEEKDAYS } from "../../src/domain/rules/rules.ts";
import { timeWindowFlags, wallClock } from "../../src/domain/rules/time-window.ts";
import { DAY, HOUR, MINUTE } from "./support/actor.ts";

type Window = RuleParams["time_window"];

const WORKING: Window = {
  timezone: "UTC",
  days: ["mon", "tue", "wed", "thu", "fri"],
  from: "08:00",
  to: "18:00",
  outside: true,
};

/** Whether the window flags a payment at that instant. */
function flags(change: Partial<Window>, at: string): boolean {
  const now = Date.parse(at);
  const clocks = new ZoneClocks(() => new Date(now));
  const rule = { id: "r", type: "time_window", enabled: true, params: { ...WORKING, ...change } } as const;
  const payment = { rail: "card", recipient: "x", amountMc: 1_000, merchantCategory: null } as const;
  const rules = paymentRules(readyRules([rule]), comparedPayment(payment), {
    isNewRecipient: false,
    offsetsOf: (timezone) => clocks.offsetsOf(timezone),
  });
  const [check] = rules?.checks ?? [];
  if (check?.type !== "time_window") throw new Error("a time window travels");
  return timeWindowFlags(check, rules?.zones?.[check.zone], now);
}

const inside = (change: Partial<Window>, at: string) => flags({ ...change, outside: false }, at);

describe("time windows: edges", () => {
  const rows: readonly [string, Partial<Window>, string, boolean][] = [
    ["begins at `from`", {}, "2026-05-13T08:00:00.000Z", true],
    ["not a millisecond before", {}, "2026-05-13T07:59:59.999Z", false],
    ["lasts to the millisecond before `to`", {}, "2026-05-13T17:59:59.999Z", true],
    ["is over at `to`", {}, "2026-05-13T18:00:00.000Z", false],
    ["is not there on a day that is not named", {}, "2026-05-16T12:00:00.000Z", false],
    ["24:00 is the end of the day", { from: "00:00", to: "24:00" }, "2026-05-15T23:59:59.999Z", true],
    ["and not the next one", { from: "00:00", to: "24:00" }, "2026-05-16T00:00:00.000Z", false],
    ["the leap day has its weekday", { days: ["tue"] }, "2028-02-29T12:00:00.000Z", true],
    ["the day after a leap day, too", { days: ["wed"] }, "2028-03-01T12:00:00.000Z", true],
    ["1 March of a year without", { days: ["mon"] }, "2027-03-01T12:00:00.000Z", true],
    ["over midnight: on the day itself", night("fri"), "2026-05-15T22:00:00.000Z", true],
    ["over midnight: not before it begins", night("fri"), "2026-05-15T21:59:59.999Z", false],
    ["over midnight: after it, of the day before", night("fri"), "2026-05-16T05:59:59.999Z", true],
    ["over midnight: over at `to`", night("fri"), "2026-05-16T06:00:00.000Z", false],
    ["over midnight: not in the morning of its day", night("fri"), "2026-05-15T05:00:00.000Z", false],
    ["over midnight: Sunday's reaches into Monday", night("sun"), "2026-05-18T01:00:00.000Z", true],
    ["over midnight: Monday's does not", night("mon"), "2026-05-18T01:00:00.000Z", false],
    ["to 00:00 is to the end of the day", { from: "18:00", to: "00:00" }, "2026-05-15T23:59:59.999Z", true],
    ["and leaves the next day alone", { from: "18:00", to: "00:00" }, "2026-05-16T00:00:00.000Z", false],
  ];
  function night(day: Window["days"][number]): Partial<Window> {
    return { days: [day], from: "22:00", to: "06:00" };
  }
  for (const [what, window, at, isInside] of rows) {
    it(`${what} (${at})`, () => {
      expect([inside(window, at), flags(window, at)]).to.deep.equal([isInside, !isInside]);
    });
  }
});

describe("time windows: the clock on the wall, where clocks change", () => {
  const all = { days: [...WEEKDAYS] };
  const berlin = { ...all, timezone: "Europe/Berlin" };
  const newYork = { ...all, timezone: "America/New_York" };
  const lordHowe = { ...all, timezone: "Australia/Lord_Howe" };
  const rows: readonly [string, Partial<Window>, string, boolean][] = [
    ["Berlin, winter: 08:00 is 07:00 UTC", berlin, "2026-03-28T07:00:00Z", true],
    ["Berlin, the day of the change to summer: 08:00 is 06:00 UTC", berlin, "2026-03-29T06:00:00Z", true],
    ["Berlin, and not a minute before", berlin, "2026-03-29T05:59:00Z", false],
    [
      "Berlin, the hour from 02:00 is missing: before it",
      { ...berlin, from: "02:00", to: "03:00" },
      "2026-03-29T00:59:59Z",
      false,
    ],
    [
      "Berlin, the hour from 02:00 is missing: after it",
      { ...berlin, from: "02:00", to: "03:00" },
      "2026-03-29T01:00:00Z",
      false,
    ],
    ["Berlin, 03:00 comes at once", { ...berlin, from: "03:00", to: "04:00" }, "2026-03-29T01:00:00Z", true],
    [
      "Berlin, the hour from 02:00 is repeated: the first",
      { ...berlin, from: "02:00", to: "03:00" },
      "2026-10-25T00:00:00Z",
      true,
    ],
    [
      "Berlin, the hour from 02:00 is repeated: the second",
      { ...berlin, from: "02:00", to: "03:00" },
      "2026-10-25T01:59:59Z",
      true,
    ],
    ["Berlin, and then it is over", { ...berlin, from: "02:00", to: "03:00" }, "2026-10-25T02:00:00Z", false],
    ["New York, winter: 08:00 is 13:00 UTC", newYork, "2026-03-07T13:00:00Z", true],
    ["New York, the day of the change to summer: 08:00 is 12:00 UTC", newYork, "2026-03-08T12:00:00Z", true],
    [
      "New York, the missing hour is in no window",
      { ...newYork, from: "02:00", to: "03:00" },
      "2026-03-08T07:00:00Z",
      false,
    ],
    [
      "New York, the repeated hour: the first",
      { ...newYork, from: "01:00", to: "02:00" },
      "2026-11-01T05:30:00Z",
      true,
    ],
    [
      "New York, the repeated hour: the second",
      { ...newYork, from: "01:00", to: "02:00" },
      "2026-11-01T06:30:00Z",
      true,
    ],
    [
      "New York, a day of 25 hours ends at 05:00 UTC",
      { ...newYork, days: ["sun"], from: "23:00", to: "24:00" },
      "2026-11-02T04:59:59Z",
      true,
    ],
    [
      "New York, and then it is Monday",
      { ...newYork, days: ["sun"], from: "23:00", to: "24:00" },
      "2026-11-02T05:00:00Z",
      false,
    ],
    [
      "New York, it is still Sunday there",
      { ...newYork, days: ["sun"], from: "20:00", to: "24:00" },
      "2026-05-18T03:00:00Z",
      true,
    ],
    [
      "Lord Howe goes back half an hour: 01:45 for the first time",
      { ...lordHowe, from: "01:30", to: "02:00" },
      "2026-04-04T14:45:00Z",
      true,
    ],
    ["Lord Howe: and again", { ...lordHowe, from: "01:30", to: "02:00" }, "2026-04-04T15:15:00Z", true],
    [
      "Lord Howe: and no third time",
      { ...lordHowe, from: "01:30", to: "02:00" },
      "2026-04-04T15:30:00Z",
      false,
    ],
    [
      "Lord Howe goes ahead half an hour: 02:00 to 02:30 is missing",
      { ...lordHowe, from: "02:00", to: "02:30" },
      "2026-10-03T15:30:00Z",
      false,
    ],
    [
      "Lord Howe: 02:30 comes at once",
      { ...lordHowe, from: "02:30", to: "03:00" },
      "2026-10-03T15:30:00Z",
      true,
    ],
    [
      "a night that begins before the change and ends after it",
      { ...berlin, days: ["sat"], from: "22:00", to: "03:00" },
      "2026-10-25T01:59:59Z",
      true,
    ],
  ];
  for (const [what, window, at, isInside] of rows) {
    it(`${what} (${at})`, () => {
      expect([inside(window, at), flags(window, at)]).to.deep.equal([isInside, !isInside]);
    });
  }
});

describe("time windows: what goes with a payment", () => {
  const CHANGES: readonly [string, string, number, number][] = [
    ["Europe/Berlin", "2026-03-29T01:00:00Z", 60, 120],
    ["Europe/Berlin", "2026-10-25T01:00:00Z", 120, 60],
    ["America/New_York", "2026-03-08T07:00:00Z", -300, -240],
    ["America/New_York", "2026-11-01T06:00:00Z", -240, -300],
    ["Australia/Lord_Howe", "2026-04-04T15:00:00Z", 660, 630],
    ["Australia/Lord_Howe", "2026-10-03T15:30:00Z", 630, 660],
  ];
  for (const [zone, at, before, after] of CHANGES) {
    it(`${zone} changes its clocks at ${at}, to the millisecond`, () => {
      const change = Date.parse(at);
      const from = change - 7 * HOUR - 12 * MINUTE;
      const until = change + 30 * HOUR;
      expect(zoneOffsets(zone, from, until)).to.deep.equal({
        segments: [
          [from, before],
          [change, after],
        ],
        untilMs: until,
      });
    });
  }

  it("the wall clock agrees with luxon's every quarter of an hour for a year, in any zone", () => {
    const start = Date.UTC(2026, 0, 1);
    const zones = [
      "Europe/Berlin",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
      "Pacific/Apia",
      "Africa/Casablanca",
    ];
    for (const zone of someOrAll(zones, 1)) {
      const offsets = zoneOffsets(zone, start, start + 365 * DAY);
      for (let at = start; at < start + 365 * DAY; at += 15 * MINUTE) {
        const wall = DateTime.fromMillis(at, { zone });
        const { minutes, weekday } = wallClock(offsets, at) ?? {};
        // A matcher for each of so many would take most of the time.
        const agrees = weekday === wall.weekday - 1 && minutes === wall.hour * 60 + wall.minute;
        if (!agrees) expect.fail(`${zone} ${at}: weekday ${weekday}, minute ${minutes}`);
      }
    }
  }).timeout(300_000);

  it("covers at least an hour back and 48 hours ahead, and is worked out once an hour", () => {
    const now = new Date("2026-05-13T12:59:59.999Z");
    const clocks = new ZoneClocks(() => new Date(now));
    const offsets = clocks.offsetsOf("Europe/Berlin");
    expect(offsets.segments[0]?.[0]).to.be.at.most(now.getTime() - HOUR);
    expect(offsets.untilMs).to.be.above(now.getTime() + 48 * HOUR);
    now.setTime(Date.parse("2026-05-13T12:00:00Z"));
    expect(clocks.offsetsOf("Europe/Berlin")).to.equal(offsets);
    now.setTime(Date.parse("2026-05-13T13:00:00Z"));
    expect(clocks.offsetsOf("Europe/Berlin")).not.to.equal(offsets);
  });

  it("a time that it says nothing of is flagged, by windows of both kinds", () => {
    const offsets = { segments: [[1_000, 0]] as const, untilMs: 2_000 };
    const check = { type: "time_window", zone: 0, days: [3], fromMinutes: 0, toMinutes: 1_440 } as const;
    for (const outside of [true, false]) {
      const at = (now: number) => timeWindowFlags({ ...check, outside }, offsets, now);
      expect([at(999), at(1_000), at(1_999), at(2_000)]).to.deep.equal([true, !outside, !outside, true]);
      expect(timeWindowFlags({ ...check, outside }, undefined, 1_000)).to.equal(true);
    }
  });
});
