import { expect } from "chai";
import { mintKey } from "../authorization/scene.ts";
import { McpCaller } from "../mcp/support.ts";
import { outcomeOf, type ProjectBudget, type TeamBudget, TestBudgets } from "../support/budgets.ts";
import { elevate, newWorld, type TestAgent, type World } from "../support/world.ts";

/** What a caller sends back of a budget that it has read. */
const bodyOf = <T extends ProjectBudget | TeamBudget>({ usage: _usage, ...body }: T) => body;

describe("a budget that is put back as it was read", () => {
  let world: World;
  let budgets: TestBudgets;
  let agent: TestAgent;
  beforeEach(async () => {
    world = await newWorld();
    budgets = new TestBudgets(world);
    agent = await world.agent({ budgetCents: 1_000 });
  });

  /** A person changes the agent's policy. */
  async function patch(change: object): Promise<void> {
    const { id } = agent;
    await elevate(world);
    const { version } = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id });
    const body = { ...change, version };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id, body });
  }

  it("by a key: 409 once a person has lowered an agent, over REST and MCP; it stays stopped", async () => {
    const id = world.organization.teamId;
    const token = await mintKey(world, ["teams:write"]);
    const read = bodyOf(await world.api.ok("getTeamBudget", 200, { token, id }));
    await patch({ budgetCents: 0 });
    await world.api.refused("setTeamBudget", 409, "STALE_BUDGET", { token, id, body: read });
    const mcp = await McpCaller.connect(world.service.baseUrl, token);
    try {
      await mcp.refused("set_team_budget", "STALE_BUDGET", { ...read, teamId: id });
    } finally {
      await mcp.close();
    }
    expect(await outcomeOf(agent, 1)).to.equal("BUDGET_EXCEEDED");
    const again = bodyOf(await world.api.ok("getTeamBudget", 200, { token, id }));
    expect(again.agents).to.deep.equal([{ agentId: agent.id, budgetCents: 0 }]);
    await world.api.ok("setTeamBudget", 200, { token, id, body: again });
  });

  it("of a project by a key: 409 once a person has lowered a team's cap, and the cap stays", async () => {
    const { projectId: id, teamId } = world.organization;
    const token = await mintKey(world, ["projects:write"]);
    const read = bodyOf(await world.api.ok("getProjectBudget", 200, { token, id }));
    await budgets.setTeam({ capCents: 0 });
    await world.api.refused("setProjectBudget", 409, "STALE_BUDGET", { token, id, body: read });
    expect(await outcomeOf(agent, 1)).to.equal("TEAM_CAP_EXCEEDED");
    const again = bodyOf(await world.api.ok("getProjectBudget", 200, { token, id }));
    expect(again.teams).to.deep.equal([{ teamId, capCents: 0 }]);
    await world.api.ok("setProjectBudget", 200, { token, id, body: again });
  });

  it("stays current while no child's budget changes; a child created since is named as missing", async () => {
    const { token } = world;
    const id = world.organization.teamId;
    const read = bodyOf(await budgets.team());
    await patch({ dailySpendLimitCents: 500 });
    await patch({ budgetCents: 1_000 });
    await world.api.ok("setTeamBudget", 200, { token, id, body: read });
    const [project, team] = [bodyOf(await budgets.project()), bodyOf(await budgets.team())];
    const added = await world.agent();
    const request = { token, id, body: team };
    const refused = await world.api.refused("setTeamBudget", 422, "BUDGET_CHILDREN_INCOMPLETE", request);
    expect(refused.missing).to.deep.equal([added.id]);
    expect(await budgets.team()).to.include({ version: read.version + 1 });
    await world.api.ok("setProjectBudget", 200, { token, id: world.organization.projectId, body: project });
  });
});
