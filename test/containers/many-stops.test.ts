import { expect } from "chai";
import { isSoak, shortOrSoak } from "../support/soak.ts";
import { elevate, newWorld, times, type World } from "../support/world.ts";

const AGENTS = shortOrSoak(20, 1_000);
const CREATED_AT_ONCE = 8;
const CALLS_MAX = 100;

/** A whole team of many agents is stopped by calls of bounded length, in minutes at the most. */
describe("an emergency stop of many agents", () => {
  let world: World;
  const measured: Record<string, number> = {};
  before(async () => {
    world = await newWorld();
    await elevate(world);
    for (let made = 0; made < AGENTS; made += CREATED_AT_ONCE) {
      await Promise.all(times(Math.min(CREATED_AT_ONCE, AGENTS - made), () => world.agent()));
    }
  });
  after(() => {
    if (isSoak) process.stderr.write(`${JSON.stringify(measured)}\n`);
  });

  /** Repeats a half until none is left. Answers how many it has stopped. */
  async function untilNoneIsLeft(what: string, half: () => Promise<{ done: number; remaining: number }>) {
    const began = performance.now();
    let stopped = 0;
    for (let calls = 1; calls <= CALLS_MAX; calls += 1) {
      const { done, remaining } = await half();
      stopped += done;
      measured[`${what}: calls`] = calls;
      measured[`${what}: ms`] = Math.round(performance.now() - began);
      if (remaining === 0) return stopped;
    }
    throw new Error(`${what} is not done after ${String(CALLS_MAX)} calls`);
  }

  it("each agent is paused and has no key in the end, and none is counted twice", async () => {
    const own = { token: world.token, id: world.organization.teamId };
    const paused = await untilNoneIsLeft("pausing", async () => {
      const { paused: done, remaining } = await world.api.ok("pauseTeamAgents", 200, own);
      return { done, remaining };
    });
    // A call that was answered 503 and came again does not say how many it had stopped.
    expect(paused).to.be.within(1, AGENTS);
    const summary = await world.api.ok("summarizeAgents", 200, { token: world.token });
    expect(summary.counts).to.deep.equal({ active: 0, paused: AGENTS, archived: 0 });
    const revoked = await untilNoneIsLeft("revoking", async () => {
      const { revoked: done, remaining } = await world.api.ok("revokeTeamAgentKeys", 200, own);
      return { done, remaining };
    });
    expect(revoked).to.be.within(1, AGENTS);
    const { organizationId } = world.organization;
    const stopped = { organizationId, lifecycle: "paused", key: null };
    expect(await world.service.db.collection("agents").countDocuments(stopped)).to.equal(AGENTS);
  });
});
