import * as fc from "fast-check";
import { expect } from "chai";
import { DateTime } from "luxon";
import { zoneAround } from "../../src/actors/calendar-zone.ts";
import {
  type Calendar,
  changedCalendar,
  isNewerZone,
  PERIODS,
  UTC_CALENDAR,
  windowBounds,
} from "../../src/domain/ledger/calendar.ts";
import { zoneOffsets } from "../../src/lib/zone-offset.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const FROM = Date.UTC(2024, 0, 1);
const UNTIL = Date.UTC(2027, 0, 1);

/** With half and quarter hours, both hemispheres, gaps and repeats at midnight, and clocks that change twice around Ramadan. */
const ZONES = [
  "Europe/Berlin",
  "America/New_York",
  "America/Havana",
  "America/Santiago",
  "America/St_Johns",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Asia/Beirut",
  "Asia/Kathmandu",
  "Asia/Tokyo",
  "Australia/Lord_Howe",
  "Pacific/Chatham",
  "Pacific/Kiritimati",
  "America/Asuncion",
] as const;

const offsets = new Map<string, Calendar>();

function calendarIn(timezone: string): Calendar {
  const known = offsets.get(timezone);
  if (known !== undefined) return known;
  const { segments, untilMs } = zoneOffsets(timezone, FROM - 400 * DAY, UNTIL + 400 * DAY, DAY);
  const calendar = { ...UTC_CALENDAR, timezone, segments, until: untilMs };
  offsets.set(timezone, calendar);
  return calendar;
}

/** The first instant at which the clocks of a zone show a local time, or a later one. */
function firstInstant(wall: number, zone: string): number {
  const isShown = (at: number): boolean => at + DateTime.fromMillis(at, { zone }).offset * MINUTE >= wall;
  // No zone is further from UTC than a day. Offsets change at full quarters of hours at the most.
  let at = wall - DAY;
  while (!isShown(at)) at += 15 * MINUTE;
  while (isShown(at - MINUTE)) at -= MINUTE;
  return at;
}

/** The start of a period and of the next one, by luxon's calendar. */
function expected(calendar: Calendar, place: number, at: number): readonly [number, number] {
  const { monthDay, resetMinutes, timezone, weekStart, yearMonth } = calendar;
  const on = (day: DateTime): number => firstInstant(day.toMillis() + resetMinutes * MINUTE, timezone);
  const local = DateTime.fromMillis(at, { zone: timezone });
  const today = DateTime.fromObject(
    { year: local.year, month: local.month, day: local.day },
    { zone: "UTC" },
  );
  const year = today.startOf("year").set({ month: yearMonth, day: monthDay }).minus({ years: 2 });
  const [step, first] = [
    [{ days: 1 }, today.minus({ days: 3 })] as const,
    [{ weeks: 1 }, today.startOf("week").minus({ weeks: 2 }).plus({ days: weekStart })] as const,
    [{ months: 1 }, today.startOf("month").minus({ months: 2 }).set({ day: monthDay })] as const,
    [{ months: 3 }, year] as const,
    [{ years: 1 }, year] as const,
  ][place] ?? [{ days: 1 }, today];
  // One period after the other, from before the instant on.
  let start = first;
  for (let next = start.plus(step); on(next) <= at; next = start.plus(step)) start = next;
  return [on(start), on(start.plus(step))];
}

const settings = fc.record({
  timezone: fc.constantFrom(...ZONES),
  resetMinutes: fc.constantFrom(0, 0, 30, 90, 120, 150, 240, 1_439),
  weekStart: fc.nat(6),
  monthDay: fc.integer({ min: 1, max: 28 }),
  yearMonth: fc.integer({ min: 1, max: 12 }),
});

describe("a project's calendar", () => {
  it("windows begin and end where a calendar library has them, in 14 zones over three years", () => {
    const instant = fc.integer({ min: FROM, max: UNTIL });
    const near = fc.tuple(fc.boolean(), fc.integer({ min: -3 * HOUR, max: 3 * HOUR }));
    fc.assert(
      fc.property(settings, instant, near, ({ timezone, ...set }, any, [isNear, shift]) => {
        const calendar = { ...calendarIn(timezone), ...set };
        // Half of the instants are near a change of the clocks.
        const changes = calendar.segments.slice(1).map(([since]) => since);
        const change = changes.find((since) => since > any);
        const at = isNear && change !== undefined && change < UNTIL ? change + shift : any;
        const { ends, starts } = windowBounds(calendar, at);
        for (const place of PERIODS.keys())
          expect(
            [starts[place], ends[place]],
            `${PERIODS[place] ?? ""} at ${new Date(at).toISOString()}`,
          ).to.deep.equal(expected(calendar, place, at));
      }),
      { seed, numRuns: shortOrSoak(80, 3_000) },
    );
  });

  it("a skipped reset is the first instant after the gap, a repeated one its first occurrence", () => {
    // Clocks in Berlin go from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October.
    const berlin = { ...calendarIn("Europe/Berlin"), resetMinutes: 150 };
    const spring = Date.parse("2026-03-29T01:00:00Z");
    expect(windowBounds(berlin, spring).starts[0]).to.equal(spring);
    expect(windowBounds(berlin, spring - 1).ends[0]).to.equal(spring);
    const autumn = Date.parse("2026-10-25T00:30:00Z");
    expect(windowBounds(berlin, autumn).starts[0]).to.equal(autumn);
    // 02:10 for the second time: the day has begun, and begins once.
    expect(windowBounds(berlin, Date.parse("2026-10-25T01:10:00Z")).starts[0]).to.equal(autumn);
  });

  it("a change forgets nothing that is counted before the new calendar's next boundary", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(settings, fc.integer({ min: 0, max: 90 * DAY })), { minLength: 1, maxLength: 5 }),
        (steps) => {
          let [calendar, now] = [UTC_CALENDAR, FROM];
          for (const [{ timezone, ...set }, wait] of steps) {
            now += wait;
            const before = windowBounds(calendar, now).starts;
            const { segments, until } = calendarIn(timezone);
            calendar = changedCalendar(calendar, { ...set, timezone, segments, until, version: 2 }, now);
            const { ends, starts } = windowBounds(calendar, now);
            expect(starts).to.deep.equal(before);
            for (const [place, end] of ends.entries()) {
              expect(windowBounds(calendar, end - 1).starts[place]).to.equal(before[place]);
              expect(windowBounds(calendar, end).starts[place]).to.equal(end);
            }
          }
        },
      ),
      { seed, numRuns: shortOrSoak(80, 3_000) },
    );
  });

  it("a zone's offsets give way to newer data and to a longer time, never to older data", () => {
    const now = new Date("2026-05-13T12:00:00Z");
    const zone = zoneAround("Europe/Berlin", now);
    const calendar = { ...UTC_CALENDAR, ...zone };
    expect(zone.until - now.getTime()).to.be.within(540 * DAY, 560 * DAY);
    expect(zone.segments).to.have.lengthOf.within(4, 8);
    expect(isNewerZone(calendar, zone)).to.equal(false);
    expect(isNewerZone(calendar, { ...zone, until: zone.until + 1 })).to.equal(true);
    expect(isNewerZone(calendar, { ...zone, tz: "9999a", until: 0 })).to.equal(true);
    expect(isNewerZone(calendar, { ...zone, tz: "2000a", until: zone.until + 1 })).to.equal(false);
    expect(isNewerZone(calendar, { ...zone, timezone: "Asia/Tokyo", tz: "9999a" })).to.equal(false);
  });
});
