import { expect } from "chai";
import { CalendarDays } from "../../src/lib/calendar-days.ts";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { newWorld, type TestAgent, times, type World } from "../support/world.ts";

describe("sums of payments by day", () => {
  let world: World;
  let agents: TestAgent[];
  beforeEach(async () => {
    world = await newWorld();
    agents = [await world.agent(), await world.agent()];
  });

  const summary = (query: Readonly<Record<string, string>> = {}) =>
    world.api.ok("summarizeTransactions", 200, { token: world.token, query });

  /** Has a payment's record say that it was made at another time. */
  async function paidAt(at: string, agent: TestAgent | undefined, amountCents: number): Promise<void> {
    const { transaction } = (await agent?.pay({ amountCents })) ?? {};
    const records = world.service.db.collection<TransactionDocument>("transactions");
    await records.updateOne({ _id: transaction?.id ?? "" }, { $set: { createdAt: new Date(at) } });
  }

  it("counts and adds up by status, with the list's filters, newest day first", async () => {
    const [one, other] = agents;
    const now = new Date();
    const yesterday = new Date(now.getTime() - 86_400_000);
    await one?.pay({ amountCents: 300 });
    await one?.pay({ amountCents: 20_000 });
    await other?.pay({ amountCents: 50 });
    await paidAt(yesterday.toISOString(), other, 7);
    const { days, nextBefore } = await summary();
    expect(nextBefore).to.equal(null);
    expect(days).to.deep.equal([
      {
        day: now.toISOString().slice(0, 10),
        count: 3,
        amountCents: 20_350,
        groups: [
          { group: "denied", count: 1, amountCents: 20_000 },
          { group: "approved", count: 2, amountCents: 350 },
        ],
        others: null,
      },
      {
        day: yesterday.toISOString().slice(0, 10),
        count: 1,
        amountCents: 7,
        groups: [{ group: "approved", count: 1, amountCents: 7 }],
        others: null,
      },
    ]);
    const byAgent = await summary({ groupBy: "agent", status: "approved" });
    expect(byAgent.days[0]?.groups).to.deep.equal([
      { group: one?.id, count: 1, amountCents: 300 },
      { group: other?.id, count: 1, amountCents: 50 },
    ]);
    const ofOne = await summary({ agentId: other?.id ?? "", range: "7d", type: "card" });
    expect(ofOne.days.map(({ amountCents }) => amountCents)).to.deep.equal([50, 7]);
    const narrow = await summary({
      minAmountCents: "51",
      maxAmountCents: "300",
      from: yesterday.toISOString(),
    });
    expect(narrow.days.map(({ amountCents }) => amountCents)).to.deep.equal([300]);
    const [from, to] = [yesterday, new Date(yesterday.getTime() + 1)].map((at) => at.toISOString());
    const moment = await summary({ from: from ?? "", to: to ?? "" });
    expect(moment.days.map(({ amountCents }) => amountCents)).to.deep.equal([7]);
    expect((await summary({ type: "wallet" })).days).to.deep.equal([]);
    expect((await summary({ before: now.toISOString().slice(0, 10) })).days).to.have.lengthOf(1);
  });

  it("days are those of the zone, also where the clocks are changed", async () => {
    const [one] = agents;
    await paidAt("2026-03-28T22:59:59.999Z", one, 1);
    await paidAt("2026-03-28T23:00:00.000Z", one, 2);
    await paidAt("2026-03-29T21:59:59.999Z", one, 4);
    await paidAt("2026-03-29T22:00:00.000Z", one, 8);
    const { days } = await summary({ tz: "Europe/Berlin", range: "all" });
    expect(days.map(({ amountCents, day }) => [day, amountCents])).to.deep.equal([
      ["2026-03-30", 8],
      ["2026-03-29", 6],
      ["2026-03-28", 1],
    ]);
  });

  it("nothing of another organization is in it, and an unknown place has nothing", async () => {
    const stranger = await newWorld();
    await agents[0]?.pay();
    const theirs = await stranger.api.ok("summarizeTransactions", 200, { token: stranger.token });
    expect(theirs).to.deep.equal({ days: [], nextBefore: null });
    const unknown = await summary({ teamId: stranger.organization.teamId });
    expect(unknown.days).to.deep.equal([]);
  });

  it("reads keys of one index, as many as there are payments in its days, and no record", async () => {
    const payer = await world.agent();
    await Promise.all(times(5, () => payer.pay()));
    const { organizationId } = world.organization;
    const plan = await world.service.db
      .collection("transactions")
      .aggregate(
        [
          { $match: { organizationId, createdAt: { $gte: new Date(Date.now() - 86_400_000) } } },
          { $group: { _id: "$status", count: { $sum: 1 }, amountCents: { $sum: "$amountCents" } } },
        ],
        { hint: "summary" },
      )
      .explain("executionStats");
    const text = JSON.stringify(plan);
    expect(text)
      .to.match(/"totalDocsExamined":0\b/)
      .and.match(/"totalKeysExamined":5\b/);
  });
});

const hoursOf = (zone: string, day: string): number => {
  const { from, until } = new CalendarDays(zone).named(day);
  return (until.getTime() - from.getTime()) / 3_600_000;
};

describe("days on the clocks of a zone", () => {
  it("are as long as the clocks have it", () => {
    expect(hoursOf("UTC", "2026-03-29")).to.equal(24);
    expect(hoursOf("Europe/Berlin", "2026-03-29")).to.equal(23);
    expect(hoursOf("Europe/Berlin", "2026-10-25")).to.equal(25);
    // Midnight itself is left out here.
    expect(hoursOf("America/Santiago", "2026-09-06")).to.equal(23);
    expect(hoursOf("Asia/Kathmandu", "2026-01-01")).to.equal(24);
    expect(hoursOf("Pacific/Kiritimati", "2026-01-01")).to.equal(24);
    expect(hoursOf("Pacific/Pago_Pago", "2026-01-01")).to.equal(24);
  });

  it("follow one another without gaps, and each instant lies in the one that is its", () => {
    for (const zone of ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "America/Havana"]) {
      const days = new CalendarDays(zone);
      let day = days.named("2026-12-31");
      for (const _index of times(400, (index) => index)) {
        const before = days.before(day);
        expect(before.until, `${zone} ${day.day}`).to.deep.equal(day.from);
        expect(days.of(day.from).day).to.equal(day.day);
        expect(days.of(new Date(day.until.getTime() - 1)).day).to.equal(day.day);
        day = before;
      }
    }
  });
});
