import { expect } from "chai";
import { makeIdleAgents } from "../../lab/bench/systems/idle-agents.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { inTime } from "../support/in-time.ts";
import { isSoak, shortOrSoak } from "../support/soak.ts";
import { TestBudgets } from "../support/budgets.ts";
import { elevate, newWorld, until, type World } from "../support/world.ts";

const AGENTS = shortOrSoak(300, 10_000);
const MADE_MS = 1_800_000;
const FOLLOWED_MS = 1_800_000;
const STOPPED_MS = 1_000;

/** The largest team that there may be: read, changed, stopped and archived as any other. */
describe(`a team of ${AGENTS} agents`, function () {
  this.timeout(MADE_MS + FOLLOWED_MS);
  let world: World;
  const measured: Record<string, number> = {};
  before(async () => {
    world = await newWorld();
    await elevate(world);
    const { addresses, temporal } = world.service.connections;
    const { organizationId, projectId, teamId } = world.organization;
    await timed("made", () =>
      makeIdleAgents({
        db: world.service.db,
        temporal,
        taskQueue: addresses.taskQueue,
        place: { organizationId, projectId, teamId },
        count: AGENTS - 1,
        withinMs: MADE_MS,
      }),
    );
    await world.agent();
  });
  after(() => {
    if (isSoak) process.stderr.write(`${JSON.stringify(measured, null, 2)}\n`);
  });

  async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const done = await work();
    measured[`${what}: ms`] = Math.round(performance.now() - began);
    return done;
  }
  const own = () => ({ token: world.token, id: world.organization.teamId });
  const counted = (filter: object) =>
    world.service.db
      .collection(COLLECTIONS.agents)
      .countDocuments({ teamId: world.organization.teamId, ...filter });
  const untilAll = (what: string, filter: object) =>
    timed(what, () =>
      until(what, async () => ((await counted(filter)) === AGENTS ? true : null), FOLLOWED_MS),
    );

  it("its budget is read and replaced whole, each agent by name", async () => {
    const budgets = new TestBudgets(world);
    const before = await timed("budget read", () => budgets.team());
    expect(before.agents).to.have.lengthOf(AGENTS);
    const changed = before.agents.map(({ agentId }) => ({ agentId, budgetCents: 999_999_999 }));
    const after = await timed("budget replaced", () =>
      budgets.setTeam({ capCents: 1_000_000_000_000, agents: changed }),
    );
    expect(after.agents).to.have.deep.members(changed);
    const lowered = await timed("cap lowered", () => budgets.setTeam({ capCents: 1 }));
    expect(lowered.capCents).to.equal(1);
    await untilAll("budgets recorded", { "policy.budgetCents": 999_999_999 });
  });

  it("all are stopped within a second of the call, each once, and records follow", async () => {
    const stopped = await inTime(
      "a stop",
      timed("stop", () => world.api.ok("stopTeam", 200, { ...own(), body: {} })),
      STOPPED_MS,
    );
    expect(stopped).to.deep.equal({ paused: AGENTS, revoked: 0 });
    await untilAll("paused in records", { lifecycle: "paused" });
    const events = world.service.db.collection(COLLECTIONS.events);
    const { organizationId } = world.organization;
    const paused = { organizationId, type: "agent.paused" };
    await timed("events", () =>
      until("each has its event", async () =>
        (await events.countDocuments(paused)) >= AGENTS ? true : null,
      ),
    );
    expect(await events.countDocuments(paused)).to.equal(AGENTS);
  });

  it("all keys are revoked in one call, and records and actors follow", async () => {
    await elevate(world);
    const stopped = await inTime(
      "a stop with the keys",
      timed("stop with keys", () => world.api.ok("stopTeam", 200, { ...own(), body: { revokeKeys: true } })),
      STOPPED_MS,
    );
    expect(stopped).to.deep.equal({ paused: 0, revoked: AGENTS });
    await untilAll("keys gone from records", { key: null });
    await untilAll("keys revoked by actors", { key: null, revision: { $gte: 2 } });
  });
});
