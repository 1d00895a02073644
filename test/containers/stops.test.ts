import { expect } from "chai";
import { expectDead, expectEvents, readAgent } from "../support/life.ts";
import { join } from "../support/people.ts";
import { elevate, newWorld, organizationKey, type TestAgent, times, type World } from "../support/world.ts";

/** What stops one agent stops all of a team or a project: paused first, which asks for nothing, then without keys. */
describe("emergency stops of teams and projects", () => {
  let world: World;
  let mine: readonly TestAgent[];
  /** In another team of the same project, and in another project. */
  let beside: TestAgent;
  let elsewhere: TestAgent;
  let otherProjectId: string;

  before(async () => {
    world = await newWorld();
    const { api, token } = world;
    const { projectId } = world.organization;
    otherProjectId = (await api.ok("createProject", 201, { token, body: { name: "Other" } })).project.id;
    const teamIn = async (id: string) =>
      (await api.ok("createTeam", 201, { token, body: { name: "Team", projectId: id } })).team.id;
    mine = await Promise.all(times(3, () => world.agent({ autoApprovalThresholdCents: 500 })));
    beside = await world.agent({ teamId: await teamIn(projectId) });
    elsewhere = await world.agent({ teamId: await teamIn(otherProjectId) });
  });

  const statesOf = async (agents: readonly TestAgent[]) =>
    (await Promise.all(agents.map((agent) => readAgent(world, agent)))).map(({ key, state }) =>
      key === null ? `${state}, no key` : state,
    );
  const team = () => ({ token: world.token, id: world.organization.teamId });
  const entry = async (action: string) => {
    const { entries } = await world.api.ok("listAuditLog", 200, { token: world.token, query: { action } });
    return entries[0];
  };

  it("a team: each agent is paused with its event, holds stay, no other agent is touched", async () => {
    const [first, second, third] = mine;
    if (first === undefined || second === undefined || third === undefined)
      throw new Error("there are three");
    const held = await first.hold({ amountCents: 600 });
    await world.api.ok("pauseAgent", 200, { token: world.token, id: third.id });
    const { token } = await join(world, "member");
    const answered = await world.api.ok("pauseTeamAgents", 200, { ...team(), token });
    expect(answered).to.deep.equal({ paused: 2, remaining: 0 });
    expect(await statesOf(mine)).to.deep.equal(["paused", "paused", "paused"]);
    expect(await statesOf([beside, elsewhere])).to.deep.equal(["active", "active"]);
    for (const { key } of mine) await world.api.refused("listPayments", 403, "AGENT_PAUSED", { token: key });
    for (const agent of [second, third])
      await expectEvents(world, agent, { "agent.created": 1, "agent.paused": 1 });
    const { approval } = await world.api.ok("getApproval", 200, { token: world.token, id: held.approvalId });
    expect(approval.resolution).to.equal(undefined);
    const said = await entry("pauseTeamAgents");
    expect(said?.resource).to.deep.equal({ type: "team", id: world.organization.teamId });
    expect(said?.after).to.have.property("paused").that.has.members([first.id, second.id]);
  });

  it("its keys: by an admin who has stepped up, and each is dead on its next request", async () => {
    const member = await join(world, "member");
    await world.api.refused("revokeTeamAgentKeys", 403, "ROLE_REQUIRED", { ...team(), token: member.token });
    await elevate(world, new Date(0));
    await world.api.refused("revokeTeamAgentKeys", 403, "STEP_UP_REQUIRED", team());
    await elevate(world);
    const answered = await world.api.ok("revokeTeamAgentKeys", 200, team());
    expect(answered).to.deep.equal({ revoked: 3, remaining: 0 });
    expect(await statesOf(mine)).to.deep.equal(times(3, () => "paused, no key"));
    for (const { key } of mine) await expectDead(world, key);
    const said = await entry("revokeTeamAgentKeys");
    expect(said?.before).to.have.property("keys").that.has.lengthOf(3);
    expect(JSON.stringify(said)).to.not.include(mine[0]?.key.slice(0, -4));
  });

  it("again: nothing is left to do, no second event, and what was revoked is not revoked again", async () => {
    expect(await world.api.ok("pauseTeamAgents", 200, team())).to.deep.equal({ paused: 0, remaining: 0 });
    expect(await world.api.ok("revokeTeamAgentKeys", 200, team())).to.deep.equal({
      revoked: 0,
      remaining: 0,
    });
    for (const agent of mine.slice(1))
      await expectEvents(world, agent, { "agent.created": 1, "agent.paused": 1 });
  });

  it("a project: agents of all its teams; an organization key pauses inside its binding alone", async () => {
    const { projectId } = world.organization;
    const binding = { type: "project", id: projectId } as const;
    const { token } = await organizationKey(world, { scopes: ["agents:write"], binding });
    const foreign = { token, id: otherProjectId };
    await world.api.refused("pauseProjectAgents", 403, "OUTSIDE_BINDING", foreign);
    const own = { token, id: projectId };
    expect(await world.api.ok("pauseProjectAgents", 200, own)).to.deep.equal({ paused: 1, remaining: 0 });
    await world.api.refused("revokeProjectAgentKeys", 403, "SESSION_REQUIRED", own);
    const revoked = await world.api.ok("revokeProjectAgentKeys", 200, { ...own, token: world.token });
    expect(revoked).to.deep.equal({ revoked: 1, remaining: 0 });
    expect(await statesOf([beside, elsewhere])).to.deep.equal(["paused, no key", "active"]);
    await elsewhere.pay();
  });

  it("an archived team has no agent to stop: 409", async () => {
    const { api, token } = world;
    const { id } = (await api.ok("createTeam", 201, { token, body: { name: "Old" } })).team;
    await api.ok("archiveTeam", 200, { token, id });
    await api.refused("pauseTeamAgents", 409, "CONTAINER_ARCHIVED", { token, id });
    await api.refused("revokeTeamAgentKeys", 409, "CONTAINER_ARCHIVED", { token, id });
  });
});
