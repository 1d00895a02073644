import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { mintKey } from "../authorization/scene.ts";
import { McpCaller } from "../mcp/support.ts";
import type { Answer } from "../support/api.ts";
import { TestBudgets } from "../support/budgets.ts";
import { codeOf } from "../support/contract-api.ts";
import { shortOrSoak } from "../support/soak.ts";
import { elevate, newWorld, times, type World } from "../support/world.ts";

const { getTeamBudget } = operations;

const MAX_CENTS = 1_000_000_000_000;

/** Replacements at once of one version. */
const AT_ONCE = shortOrSoak(6, 16);

/** As many agents as a request may name, none of which there is. */
const longest = () => times(3_300, () => ({ agentId: randomUUID(), budgetCents: 1 }));

/** Of so many replacements at once this one was made. On a busy machine it, or one after it, may be answered 503. */
function expectOnlyMade(answers: readonly Answer[], made: number | null): void {
  for (const [index, answer] of answers.entries()) {
    const outcome = codeOf(answer) ?? answer.status;
    expect(answer.status === 503 ? 503 : outcome).to.be.oneOf([index === made ? 200 : "STALE_BUDGET", 503]);
  }
}

describe("budgets of projects and teams over HTTP", () => {
  let world: World;
  let budgets: TestBudgets;
  beforeEach(async () => {
    world = await newWorld();
    budgets = new TestBudgets(world);
  });

  const policyOf = (id: string) => world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id });
  const putTeam = (body: object, id = world.organization.teamId) =>
    world.api.call("setTeamBudget", { token: world.token, id, body });
  const putProject = (body: object, id = world.organization.projectId) =>
    world.api.call("setProjectBudget", { token: world.token, id, body });

  const refusedProject = async (body: object, id?: string) => codeOf(await putProject(body, id));

  it("refusals come in order: shape 400, stranger 404, archived and stale 409, children 422", async () => {
    const agent = await world.agent();
    const archived = await budgets.newTeam();
    const emptyProject = await budgets.newProject();
    await elevate(world);
    await world.api.ok("archiveTeam", 200, { token: world.token, id: archived });
    await world.api.ok("archiveProject", 200, { token: world.token, id: emptyProject });
    const agents = [{ agentId: agent.id, budgetCents: 10_000 }];
    const unknown = { agentId: randomUUID(), budgetCents: 1 };
    const whole = { capCents: 1, agents, version: 1 };
    const malformed = { capCents: 1, agents, version: "1" };
    const stale = { capCents: 1, agents: [], version: 2 };
    const rows: readonly (readonly [object, string, number, string])[] = [
      [malformed, randomUUID(), 400, "VALIDATION_FAILED"],
      [{ ...whole, capCents: -1 }, archived, 400, "VALIDATION_FAILED"],
      [stale, randomUUID(), 404, "NOT_FOUND"],
      [stale, archived, 409, "CONTAINER_ARCHIVED"],
      [stale, world.organization.teamId, 409, "STALE_BUDGET"],
      [{ ...stale, version: 0 }, world.organization.teamId, 409, "STALE_BUDGET"],
      [{ ...whole, agents: [] }, world.organization.teamId, 422, "BUDGET_CHILDREN_INCOMPLETE"],
      [{ ...whole, agents: [unknown] }, world.organization.teamId, 422, "BUDGET_CHILDREN_INCOMPLETE"],
      [{ ...whole, agents: [...agents, unknown] }, world.organization.teamId, 422, "BUDGET_CHILD_UNKNOWN"],
      [{ ...whole, agents: [...agents, ...agents] }, world.organization.teamId, 422, "BUDGET_CHILD_UNKNOWN"],
    ];
    const [team, project] = [await budgets.team(), await budgets.project()];
    for (const [body, id, status, code] of rows) {
      const answer = await putTeam(body, id);
      expect([answer.status, codeOf(answer)], JSON.stringify(body)).to.deep.equal([status, code]);
    }
    const staleProject = { capCents: 1, teams: [], version: 9 };
    expect(await refusedProject(staleProject, emptyProject)).to.equal("CONTAINER_ARCHIVED");
    expect(await refusedProject(staleProject)).to.equal("STALE_BUDGET");
    expect(await refusedProject({ ...staleProject, version: 1 })).to.equal("BUDGET_CHILDREN_INCOMPLETE");
    expect([await budgets.team(), await budgets.project()]).to.deep.equal([team, project]);
  });

  it("422 says which children are missing, unknown, another team's, archived or named twice", async () => {
    const [one, two, gone] = [await world.agent(), await world.agent(), await world.agent()];
    const other = await world.agent({ teamId: await budgets.newTeam() });
    await elevate(world);
    await world.api.ok("archiveAgent", 200, { token: world.token, id: gone.id });
    const naming = (...ids: readonly string[]) => ({
      token: world.token,
      id: world.organization.teamId,
      body: { capCents: 5, agents: ids.map((agentId) => ({ agentId, budgetCents: 5 })), version: 1 },
    });
    const incomplete = async (...ids: readonly string[]) =>
      (await world.api.refused("setTeamBudget", 422, "BUDGET_CHILDREN_INCOMPLETE", naming(...ids))).missing;
    const unknown = async (...ids: readonly string[]) =>
      (await world.api.refused("setTeamBudget", 422, "BUDGET_CHILD_UNKNOWN", naming(...ids))).unknown;
    expect((await incomplete())?.toSorted()).to.deep.equal([one.id, two.id].toSorted());
    expect(await incomplete(one.id, gone.id)).to.deep.equal([two.id]);
    const both = [one.id, two.id];
    for (const odd of [gone.id, other.id, one.id, randomUUID()]) {
      expect(await unknown(...both, odd)).to.deep.equal([odd]);
    }
    const teams = [{ teamId: world.organization.teamId, capCents: null }];
    const body = { capCents: null, teams, version: 1 };
    const { missing } = await world.api.refused("setProjectBudget", 422, "BUDGET_CHILDREN_INCOMPLETE", {
      token: world.token,
      id: world.organization.projectId,
      body,
    });
    expect(missing).to.have.lengthOf(1);
    expect((await policyOf(one.id)).version).to.equal(1);
  });

  it("a project's has no cap at first; a PUT raises its version and that of teams it changes", async () => {
    const { teamId } = world.organization;
    const usage = { spentCents: 0, reservedCents: 0, remainingCents: null, increases: [] };
    const agent = await world.agent({ budgetCents: 700 });
    expect(await budgets.team()).to.deep.equal({
      capCents: null,
      spendLimits: [],
      agents: [{ agentId: agent.id, budgetCents: 700 }],
      version: 1,
      usage,
    });
    expect(await budgets.project()).to.deep.equal({
      capCents: null,
      spendLimits: [],
      teams: [{ teamId, capCents: null }],
      version: 1,
      usage,
    });
    const other = await budgets.newTeam();
    const teams = [
      { teamId, capCents: 300 },
      { teamId: other, capCents: null },
    ];
    // Teams may add up to more than the project's cap, or one of them be above it.
    const set = await budgets.setProject({ capCents: 200, teams });
    expect([set.capCents, set.version]).to.deep.equal([200, 2]);
    expect(set.teams).to.have.deep.members(teams);
    expect(await budgets.project()).to.deep.equal(set);
    expect(await budgets.team()).to.include({ capCents: 300, version: 2 });
    expect(await budgets.team(other)).to.include({ capCents: null, version: 1 });
    const again = await budgets.setProject({});
    expect([again.version, (await budgets.team()).version]).to.deep.equal([3, 2]);
    await budgets.setTeam({ capCents: 301 });
    expect((await budgets.project()).teams).to.deep.include({ teamId, capCents: 301 });
    expect((await budgets.project()).version).to.equal(4);
    expect((await budgets.setProject({ capCents: null })).usage.remainingCents).to.equal(null);
  });

  it("a team's PUT sets its agents' budgets, and raises only the changed policies' versions", async () => {
    const [one, two] = [await world.agent({ budgetCents: 1_000 }), await world.agent({ budgetCents: 2_000 })];
    const agents = [
      { agentId: one.id, budgetCents: 1_000 },
      { agentId: two.id, budgetCents: 0 },
    ];
    const set = await budgets.setTeam({ agents });
    // It is made again where its answer was lost.
    expect(set.version).to.be.within(2, 3);
    expect(set.agents).to.have.deep.members(agents);
    expect(await budgets.team()).to.deep.equal(set);
    expect(await policyOf(one.id)).to.include({ budgetCents: 1_000, version: 1 });
    expect(await policyOf(two.id)).to.include({ budgetCents: 0, version: 2 });
    const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id: two.id });
    expect(agent.budgetCents).to.equal(0);
    expect((await two.pay({ amountCents: 1 })).transaction.denialCode).to.equal("BUDGET_EXCEEDED");
    await elevate(world);
    const body = { version: 1, budgetCents: 5 };
    const request = { token: world.token, id: two.id, body };
    await world.api.refused("updateAgentBudgetPolicy", 409, "VERSION_CONFLICT", request);
    await world.api.ok("updateAgentBudgetPolicy", 200, { ...request, body: { ...body, version: 2 } });
    expect((await budgets.team()).agents).to.deep.include({ agentId: two.id, budgetCents: 5 });
    // What a person set by hand stays, whatever was told before.
    await budgets.setTeam({ capCents: 100 });
    await budgets.setProject({ capCents: 100 });
    expect(await policyOf(two.id)).to.include({ budgetCents: 5, version: 3 });
  });

  it("the largest and the smallest amount are read back, and used up together, by tools too", async () => {
    const agent = await world.agent();
    for (const cents of [0, MAX_CENTS]) {
      const agents = [{ agentId: agent.id, budgetCents: cents }];
      expect(await budgets.setTeam({ capCents: cents, agents })).to.deep.include({ capCents: cents, agents });
      expect((await budgets.setProject({ capCents: cents })).usage.remainingCents).to.equal(cents);
    }
    const other = await world.agent({ budgetCents: MAX_CENTS });
    await budgets.setTeam({ capCents: null });
    await budgets.setProject({ capCents: null });
    for (const each of [agent, other]) await each.pay({ amountCents: MAX_CENTS });
    const used = { spentCents: 2 * MAX_CENTS, reservedCents: 0 };
    expect((await budgets.project()).usage).to.include(used);
    const mcp = await McpCaller.connect(world.service.baseUrl, await mintKey(world, ["teams:write"]));
    const { teamId } = world.organization;
    expect((await mcp.ok(getTeamBudget.output, "get_team_budget", { teamId })).usage).to.include(used);
    await mcp.close();
  });

  it("of however many of the longest bodies at once the project's budget lives on, and its caps", async () => {
    const agent = await world.agent();
    await budgets.setProject({ capCents: 1_000 });
    const { version } = await budgets.team();
    for (const _round of times(shortOrSoak(1, 2), () => null)) {
      const putting = times(shortOrSoak(4, 12), () =>
        putTeam({ capCents: null, agents: longest(), version }),
      );
      for (const answer of await Promise.all(putting)) expect(answer.status).to.be.oneOf([422, 503]);
    }
    await agent.pay({ amountCents: 600 });
    const { transaction } = await agent.pay({ amountCents: 600 });
    expect(transaction.denialCode).to.equal("PROJECT_CAP_EXCEEDED");
  });

  it("replacements of one version at once: exactly one is 200, and it stands whole", async () => {
    const ids = (await Promise.all(times(2, () => world.agent()))).map(({ id }) => id);
    const bodies = times(AT_ONCE, (index) => ({
      capCents: index,
      agents: ids.map((agentId) => ({ agentId, budgetCents: 1_000 + index })),
      version: 1,
    }));
    const answers = await Promise.all(bodies.map((body) => putTeam(body)));
    const { agents, capCents, version } = await budgets.team();
    const won = capCents ?? -1;
    expectOnlyMade(answers, won);
    expect(version).to.equal(2);
    expect(agents.map(({ budgetCents }) => budgetCents)).to.deep.equal(ids.map(() => 1_000 + won));
    for (const id of ids) {
      expect(await policyOf(id)).to.include({ budgetCents: 1_000 + won, version: 2 });
    }
    const { teamId } = world.organization;
    const read = await budgets.project();
    const projects = times(AT_ONCE, (cents) =>
      putProject({ capCents: cents, teams: [{ teamId, capCents: cents }], version: read.version }),
    );
    const outcomes = await Promise.all(projects);
    const project = await budgets.project();
    expectOnlyMade(outcomes, project.capCents);
    expect(project.teams[0]?.capCents).to.equal(project.capCents);
  });

  it("racing creates and a PATCH are each refused or whole; versions and budgets add up", async () => {
    const agent = await world.agent({ budgetCents: 1 });
    await elevate(world);
    const patch = world.api.call("updateAgentBudgetPolicy", {
      token: world.token,
      id: agent.id,
      body: { version: 1, budgetCents: 20 },
    });
    const put = putTeam({ capCents: 50, agents: [{ agentId: agent.id, budgetCents: 30 }], version: 1 });
    const [patched, replaced, ...created] = await Promise.all([
      patch,
      put,
      ...times(4, () => world.agent({ budgetCents: 7 })),
    ]);
    // On a busy machine either may be made and answered 503.
    expect(replaced.status).to.be.oneOf([200, 409, 422, 503]);
    expect(patched.status).to.be.oneOf([200, 409, 503]);
    const having = (wanted: number) => [patched, replaced].filter(({ status }) => status === wanted).length;
    const { version, budgetCents } = await policyOf(agent.id);
    expect(version - 1 - having(200)).to.be.within(0, having(503));
    expect(budgetCents).to.be.oneOf(having(503) > 0 ? [1, 20, 30] : [replaced.status === 200 ? 30 : 20]);
    const team = await budgets.team();
    expect(team.agents).to.have.deep.members([
      { agentId: agent.id, budgetCents },
      ...created.map(({ id }) => ({ agentId: id, budgetCents: 7 })),
    ]);
    expect(team.version).to.equal(version);
  });
});
