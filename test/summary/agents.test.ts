import { expect } from "chai";
import { archive } from "../support/life.ts";
import { elevate, newWorld, until, type World } from "../support/world.ts";

describe("counts and totals of agents", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const summary = (query: Readonly<Record<string, string>> = {}) =>
    world.api.ok("summarizeAgents", 200, { token: world.token, query });

  it("counts by state; budgets, spent and on hold of those that are not archived", async () => {
    const { api, token } = world;
    const before = await summary();
    const payer = await world.agent({ budgetCents: 10_000, autoApprovalThresholdCents: 500 });
    const paused = await world.agent({ budgetCents: 2_000 });
    const archived = await world.agent({ budgetCents: 400 });
    await payer.pay({ amountCents: 300 });
    await payer.hold({ amountCents: 700 });
    await api.ok("pauseAgent", 200, { token, id: paused.id });
    await archive(world, archived);
    const expected = {
      counts: {
        active: before.counts.active + 1,
        paused: before.counts.paused + 1,
        archived: before.counts.archived + 1,
      },
      budgetCents: before.budgetCents + 12_000,
      spentCents: before.spentCents + 300,
      reservedCents: before.reservedCents + 700,
    };
    await until("the totals follow", async () => {
      const now = await summary();
      return now.spentCents === expected.spentCents && now.reservedCents === expected.reservedCents
        ? true
        : null;
    });
    expect(await summary()).to.deep.equal(expected);
    expect(await summary({ teamId: world.organization.teamId })).to.deep.equal(expected);
  });

  it("nothing of another organization is in it, and an unknown place has nothing", async () => {
    await world.agent();
    const stranger = await newWorld();
    const none = {
      counts: { active: 0, paused: 0, archived: 0 },
      budgetCents: 0,
      spentCents: 0,
      reservedCents: 0,
    };
    expect(await stranger.api.ok("summarizeAgents", 200, { token: stranger.token })).to.deep.equal(none);
    expect(await summary({ projectId: stranger.organization.projectId })).to.deep.equal(none);
  });
});
