import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import { mintKey } from "../authorization/scene.ts";
import { elevate, type Fields, newWorld, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const {
  createAgent,
  createProject,
  createTeam,
  getAgent,
  getAgentBudgetPolicy,
  getProjectApprovalRules,
  getTeamApprovalRules,
  getTeamBudget,
  listAgents,
  listProjects,
  listTeams,
  listTransactions,
} = operations;

/**
 * What an orchestrator may be asked to do, each done in the calls that a model made of it that knew nothing but the list of
 * tools. Where it went on from an answer, the answer must still say what it went on from.
 */
describe("tasks of an orchestrator, done with the tools alone", () => {
  let world: World;
  let mcp: McpCaller;
  beforeEach(async () => {
    // One each: keys and organizations may make so many changes in a minute.
    world = await newWorld();
    mcp = await McpCaller.connect(world.service.baseUrl, await mintKey(world, ORGANIZATION_SCOPES));
  });
  afterEach(() => mcp.close());

  /** The team that a model finds, of those that it may create agents in. */
  async function team(name = "General") {
    const { teams } = await mcp.ok(listTeams.output, "list_teams", { state: "active" });
    const found = teams.find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no team ${name}`);
    return { teamId: found.id };
  }

  async function project() {
    const { projects } = await mcp.ok(listProjects.output, "list_projects", { state: "active" });
    return { projectId: projects[0]?.id };
  }

  const make = async (fields: Fields = {}) =>
    mcp.ok(createAgent.output, "create_agent", {
      name: "Shopper",
      ...(await team()),
      budgetCents: 50_000,
      idempotencyKey: randomUUID(),
      ...fields,
    });
  const policy = (agentId: string) =>
    mcp.ok(getAgentBudgetPolicy.output, "get_agent_budget_policy", { agentId });
  const budget = (args: Fields) => mcp.ok(getTeamBudget.output, "get_team_budget", args);
  const pay = (key: string | null, amountCents: number, merchant = "shop") =>
    world.api.ok("createPayment", 201, {
      token: key ?? "",
      body: { rail: "card", amountCents, merchant, purpose: "a task", idempotencyKey: randomUUID() },
    });

  it("provision a research agent with 50 dollars that asks for everything above 5 dollars", async () => {
    const made = await make({ name: "Research", budgetCents: 5_000, autoApprovalThresholdCents: 500 });
    expect(made.mcpConfigBlock?.mcpServers["agent-spending-control"].headers.Authorization).to.equal(
      `Bearer ${made.apiKey}`,
    );
    expect((await pay(made.apiKey, 500)).transaction.status).to.equal("approved");
    expect((await pay(made.apiKey, 501)).approval?.flaggedByRuleTypes).to.deep.equal(["agent_threshold"]);
    expect((await pay(made.apiKey, 5_001)).transaction.denialCode).to.equal("BUDGET_EXCEEDED");
  });

  it("cut a team's budget in half without losing an agent's", async () => {
    const [one, two] = [await make(), await make({ budgetCents: 7_000 })];
    const args = await team();
    const { agents, version } = await budget(args);
    await mcp.ok(getTeamBudget.output, "set_team_budget", { ...args, capCents: 40_000, agents, version });
    const read = await budget(args);
    const half = { ...args, capCents: 20_000, version: read.version };
    const { message, missing } = await mcp.refused("set_team_budget", "BUDGET_CHILDREN_INCOMPLETE", {
      ...half,
      agents: agents.slice(0, 1),
    });
    expect(message).to.match(/`missing`.*get_team_budget/);
    expect(missing).to.have.lengthOf(1);
    await mcp.ok(getTeamBudget.output, "set_team_budget", { ...half, agents: read.agents });
    const after = await budget(args);
    expect(after.capCents).to.equal(20_000);
    expect(after.agents).to.have.deep.members([
      { agentId: one.agent.id, budgetCents: 50_000 },
      { agentId: two.agent.id, budgetCents: 7_000 },
    ]);
  });

  it("stop the agent that spent most today", async () => {
    const made = [await make(), await make(), await make()];
    for (const [index, { apiKey }] of made.entries()) await pay(apiKey, 100 + ((index + 2) % 3) * 100);
    const { agents } = await mcp.ok(listAgents.output, "list_agents", { state: "active" });
    const spent: { readonly agentId: string; readonly todayCents: number }[] = [];
    for (const { id } of agents) {
      spent.push({ agentId: id, todayCents: (await policy(id)).usage.todayCents });
    }
    const [most] = spent.toSorted((left, right) => right.todayCents - left.todayCents);
    const { agent } = await mcp.ok(getAgent.output, "pause_agent", { agentId: most?.agentId });
    expect([agent.id, agent.state]).to.deep.equal([made[0]?.agent.id, "paused"]);
    await world.api.refused("listPayments", 403, "AGENT_PAUSED", { token: made[0]?.apiKey ?? "" });
  });

  it("let a paused agent pay again, but at most 10 dollars a day; others changed it meanwhile", async () => {
    const { agent, apiKey } = await make();
    const agentId = agent.id;
    await mcp.ok(getAgent.output, "pause_agent", { agentId });
    const { version } = await policy(agentId);
    await elevate(world);
    const body = { perTransactionLimitCents: 5_000, version };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id: agentId, body });
    const limit = { agentId, dailySpendLimitCents: 1_000 };
    const stale = await mcp.refused("update_agent_budget_policy", "VERSION_CONFLICT", { ...limit, version });
    expect(stale.message).to.include("get_agent_budget_policy");
    const now = await policy(agentId);
    await mcp.ok(getAgentBudgetPolicy.output, "update_agent_budget_policy", {
      ...limit,
      version: now.version,
    });
    await mcp.ok(getAgent.output, "resume_agent", { agentId });
    expect((await pay(apiKey, 1_001)).transaction.denialCode).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
    expect((await policy(agentId)).perTransactionLimitCents).to.equal(5_000);
  });

  it("make a team Marketing that may spend 200 dollars together, with one agent in it", async () => {
    const args = { name: "Marketing", idempotencyKey: randomUUID() };
    const growth = await mcp.ok(createProject.output, "create_project", {
      name: "Growth",
      idempotencyKey: randomUUID(),
    });
    const made = await mcp.ok(createTeam.output, "create_team", { ...args, projectId: growth.project.id });
    expect(made.team.projectId).to.equal(growth.project.id);
    const teamId = made.team.id;
    const { apiKey } = await make({ teamId });
    const { agents, version } = await budget({ teamId });
    await mcp.ok(getTeamBudget.output, "set_team_budget", { teamId, capCents: 20_000, agents, version });
    expect((await pay(apiKey, 20_001)).transaction.denialCode).to.equal("TEAM_CAP_EXCEEDED");
  });

  it("from now on a person approves the first payment to each recipient; the other rules stay", async () => {
    const args = await project();
    const tool = "set_project_approval_rules";
    const above = { type: "amount_above", params: { amountCents: 10_000 } };
    await mcp.ok(getProjectApprovalRules.output, tool, { ...args, rules: [above], version: 1 });
    const { rules, version } = await mcp.ok(
      getProjectApprovalRules.output,
      "get_project_approval_rules",
      args,
    );
    const withNew = (rule: object) => ({ ...args, rules: [...rules, rule], version });
    const wrong = await mcp.refused(tool, "VALIDATION_FAILED", withNew({ type: "new_recipient" }));
    expect(wrong.issues).to.deep.equal([
      {
        path: "rules.1.params",
        message: "is required. The parameters of the type and no others; {} for new_recipient.",
      },
    ]);
    const set = await mcp.ok(
      getProjectApprovalRules.output,
      tool,
      withNew({ type: "new_recipient", params: {} }),
    );
    expect(set.rules.map(({ type }) => type)).to.deep.equal(["amount_above", "new_recipient"]);
    expect(set.rules[0]?.id).to.equal(rules[0]?.id);
    const { apiKey } = await make();
    expect((await pay(apiKey, 100)).approval?.flaggedByRuleTypes).to.deep.equal(["new_recipient"]);
  });

  it("what did the team pay this week, and what was refused?", async () => {
    const { apiKey } = await make({ perTransactionLimitCents: 1_000 });
    for (const amountCents of [100, 200, 1_001]) await pay(apiKey, amountCents);
    const args = { ...(await team()), range: "7d" };
    const { transactions } = await mcp.ok(listTransactions.output, "list_transactions", args);
    const paid = transactions.filter(({ status }) => status === "approved");
    expect(paid.map(({ amountCents }) => amountCents)).to.deep.equal([200, 100]);
    const refused = transactions.filter(({ denialReason }) => denialReason !== null);
    expect(refused.map(({ denialCode }) => denialCode)).to.deep.equal(["PER_TRANSACTION_LIMIT_EXCEEDED"]);
    expect((await budget(await team())).usage.spentCents).to.equal(300);
  });

  it("the create timed out: see to it that there is one agent, and have its key", async () => {
    const create = { name: "Once", idempotencyKey: randomUUID() };
    const first = await make(create);
    const again = await make(create);
    expect(again.apiKey).to.equal(first.apiKey).and.to.be.a("string");
    const { agents } = await mcp.ok(listAgents.output, "list_agents", await team());
    expect(agents.map(({ id }) => id)).to.deep.equal([first.agent.id]);
  });

  it("an agent was created by mistake: get rid of it, as far as a key may", async () => {
    const { agent } = await make();
    const args = { agentId: agent.id };
    const { message } = await mcp.refused("archive_agent", "KEY_STILL_DELIVERABLE", args);
    expect(message).to.include("30 minutes").and.to.include("pause_agent");
    const paused = await mcp.ok(getAgent.output, "pause_agent", args);
    expect(paused.agent.state).to.equal("paused");
    const used = await world.agent();
    const denied = await mcp.refused("archive_agent", "MACHINE_ARCHIVE_DENIED", { agentId: used.id });
    expect(denied.message).to.match(/Do not try again.*pause_agent.*person/);
  });

  it("no agent shall pay at night in Berlin without a person's approval", async () => {
    const args = await team();
    const { rules, version } = await mcp.ok(getTeamApprovalRules.output, "get_team_approval_rules", args);
    const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    const night = { timezone: "Europe/Berlin", days, from: "22:00", to: "06:00", outside: false };
    const set = (params: object) => ({
      ...args,
      rules: [...rules, { type: "time_window", params }],
      version,
    });
    const wrong = { ...night, days: ["monday"] };
    const refused = await mcp.refused("set_team_approval_rules", "VALIDATION_FAILED", set(wrong));
    expect(refused.issues?.[0]).to.deep.include({ path: "rules.0.params.days.0" });
    expect(refused.issues?.[0]?.message).to.include('"mon"');
    const after = await mcp.ok(getTeamApprovalRules.output, "set_team_approval_rules", set(night));
    expect(after.rules[0]).to.deep.include({ type: "time_window", enabled: true, params: night });
  });
});
