import { expect } from "chai";
import type { AgentStateView } from "../../src/messages/agent.ts";
import { agentWorkflowId, STATE_QUERY } from "../../src/messages/agent.ts";
import { ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { accountSnapshot } from "../support/ledger.ts";
import { expectDead, expectEvents, mintKey, readAgent } from "../support/life.ts";
import { join } from "../support/people.ts";
import { elevate, newWorld, type TestAgent, times, until, type World } from "../support/world.ts";

const REVOKES = { revokeKeys: true } as const;

/** The emergency stop of a team, a project or the organization: one decision of each ledger, which everything else follows. */
describe("emergency stops in one decision", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
  });

  const team = () => ({ token: world.token, id: world.organization.teamId });
  const newTeam = async (projectId: string): Promise<string> => {
    const body = { name: "Team", projectId };
    return (await world.api.ok("createTeam", 201, { token: world.token, body })).team.id;
  };
  const newProject = async (): Promise<string> =>
    (await world.api.ok("createProject", 201, { token: world.token, body: { name: "Project" } })).project.id;
  const agents = (count: number, teamId = world.organization.teamId): Promise<readonly TestAgent[]> =>
    Promise.all(times(count, () => world.agent({ teamId })));

  const untilShown = (agent: TestAgent, isShown: (shown: Awaited<ReturnType<typeof readAgent>>) => boolean) =>
    until("the record follows", async () => (isShown(await readAgent(world, agent)) ? true : null));
  const isPaused = (agent: TestAgent) => untilShown(agent, ({ state }) => state === "paused");
  const isKeyless = (agent: TestAgent) => untilShown(agent, ({ key }) => key === null);
  const actorOf = ({ id }: TestAgent) =>
    world.service.connections.temporal.workflow
      .getHandle(agentWorkflowId(id))
      .query<AgentStateView>(STATE_QUERY);
  const entries = async (action: string) =>
    (await world.api.ok("listAuditLog", 200, { token: world.token, query: { action } })).entries;

  it("a member stops a team: nobody pays after the answer; records, events and one entry follow", async () => {
    const [first, second] = await agents(2);
    const beside = await world.agent({ teamId: await newTeam(world.organization.projectId) });
    if (first === undefined || second === undefined) throw new Error("there are two");
    const { token } = await join(world, "member");
    const stopped = await world.api.ok("stopTeam", 200, { ...team(), token, body: {} });
    expect(stopped).to.deep.equal({ paused: 2, revoked: 0 });
    const decided = await Promise.all(
      [first, second].map(async ({ id }) => (await accountSnapshot(world, id)).status),
    );
    expect(decided).to.deep.equal(["paused", "paused"]);
    for (const agent of [first, second]) {
      await isPaused(agent);
      await world.api.refused("listPayments", 403, "AGENT_PAUSED", { token: agent.key });
      await expectEvents(world, agent, { "agent.created": 1, "agent.paused": 1 });
      await until("its actor follows", async () =>
        (await actorOf(agent)).status === "paused" ? true : null,
      );
    }
    await beside.pay();
    expect(await world.api.ok("stopTeam", 200, team())).to.deep.equal({ paused: 0, revoked: 0 });
    const [again, said] = await entries("stopTeam");
    expect(said?.resource).to.deep.equal({ type: "team", id: world.organization.teamId });
    expect(said?.after).to.deep.equal({ revokeKeys: false, paused: 2, revoked: 0 });
    expect(again?.after).to.deep.equal({ revokeKeys: false, paused: 0, revoked: 0 });
    // What was undone stays undone.
    await world.api.ok("resumeAgent", 200, { token: world.token, id: first.id });
    await first.pay();
  });

  it("with the keys: an admin who has stepped up; each is dead, and a new one can be minted", async () => {
    const [first, second] = await agents(2);
    if (first === undefined || second === undefined) throw new Error("there are two");
    await world.api.ok("pauseAgent", 200, { token: world.token, id: first.id });
    const member = await join(world, "member");
    await elevate(world);
    await world.api.refused("stopTeam", 403, "ROLE_REQUIRED", {
      ...team(),
      token: member.token,
      body: REVOKES,
    });
    await elevate(world, new Date(0));
    await world.api.refused("stopTeam", 403, "STEP_UP_REQUIRED", { ...team(), body: REVOKES });
    await elevate(world);
    const stopped = await world.api.ok("stopTeam", 200, { ...team(), body: REVOKES });
    expect(stopped).to.deep.equal({ paused: 1, revoked: 2 });
    for (const agent of [first, second]) {
      await isKeyless(agent);
      await expectDead(world, agent.key);
    }
    expect(await world.api.ok("stopTeam", 200, { ...team(), body: REVOKES })).to.deep.equal({
      paused: 0,
      revoked: 0,
    });
    await until("its actor follows", async () =>
      (await actorOf(first)).access.activeKeyId === null ? true : null,
    );
    const { apiKey } = await mintKey(world, first);
    await world.api.ok("resumeAgent", 200, { token: world.token, id: first.id });
    await world.api.ok("listPayments", 200, { token: apiKey });
    await expectDead(world, first.key);
  });

  it("a revoked key pays nothing, though its agent is renamed and resumed at the same moment", async () => {
    const some = await agents(3);
    await elevate(world);
    const [stopped] = await Promise.all([
      world.api.ok("stopTeam", 200, { ...team(), body: REVOKES }),
      ...some.map(({ id }) =>
        world.api.ok("updateAgent", 200, { token: world.token, id, body: { name: "Renamed" } }),
      ),
    ]);
    expect(stopped.revoked).to.equal(some.length);
    for (const { id, key } of some) {
      await world.api.ok("resumeAgent", 200, { token: world.token, id });
      await world.api.refused("createPayment", 401, "UNAUTHORIZED", {
        token: key,
        body: { rail: "card", amountCents: 1, merchant: "shop", purpose: "a test", idempotencyKey: id },
      });
    }
  });

  it("the organization: every project, keys too; what a lost ledger keeps from it is named", async () => {
    const [mine] = await agents(1);
    const other = await newProject();
    const [elsewhere] = await agents(1, await newTeam(other));
    if (mine === undefined || elsewhere === undefined) throw new Error("there are two");
    await elevate(world);
    const stopped = await world.api.ok("stopOrganization", 200, { token: world.token, body: REVOKES });
    expect(stopped).to.deep.equal({ paused: 2, revoked: 2 });
    await Promise.all([mine, elsewhere].map(isKeyless));
    const next = await world.agent();
    await next.pay();

    const lost = await newProject();
    await agents(1, await newTeam(lost));
    const { workflow } = world.service.connections.temporal;
    await workflow.getHandle(ledgerWorkflowId(lost)).terminate("lost, for a test");
    const { token } = await join(world, "member");
    const answer = await world.api.refused("stopOrganization", 503, "SERVICE_UNAVAILABLE", {
      token,
      body: {},
    });
    expect(answer.message).to.include(lost).and.to.not.include(other);
    await isPaused(next);
    const [said] = await entries("stopOrganization");
    expect(said?.resource.type).to.equal("organization");
    expect(said?.after).to.deep.equal({ revokeKeys: false, paused: 1, revoked: 0, notStopped: [lost] });
  });

  it("an archived team has nothing to stop: 409", async () => {
    const id = await newTeam(world.organization.projectId);
    await elevate(world);
    await world.api.ok("archiveTeam", 200, { token: world.token, id });
    await world.api.refused("stopTeam", 409, "CONTAINER_ARCHIVED", { token: world.token, id });
  });
});
