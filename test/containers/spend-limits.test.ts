import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { COLLECTIONS, type EventDocument, type ProjectDocument } from "../../src/store/documents.ts";
import { McpCaller } from "../mcp/support.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { SIMULATED } from "../support/simulations.ts";
import { elevate, newWorld, until, type World } from "../support/world.ts";

const UTC = {
  timezone: "UTC",
  resetTime: "00:00",
  weekStartsOn: "mon",
  monthStartsOn: 1,
  yearStartsIn: 1,
} as const;

/** Counting is the ledger's, whose own tests hold it. */
describe("spend limits over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  it("an agent's are set with it, changed, kept by other changes, and removed", async () => {
    const { token } = world;
    const agent = await world.agent({ spendLimits: [{ period: "month", limitCents: 500 }] });
    expect(await outcomeOf(agent, 200)).to.equal("approved");
    const read = () => world.api.ok("getAgentBudgetPolicy", 200, { token, id: agent.id });
    const [limit, ...others] = (await read()).spendLimits;
    expect(others).to.deep.equal([]);
    expect(limit).to.include({ period: "month", limitCents: 500, usedCents: 200, remainingCents: 300 });
    expect(Date.parse(limit?.startedAt ?? "")).to.be.at.most(Date.now());
    expect(Date.parse(limit?.resetsAt ?? "")).to.be.greaterThan(Date.now());
    const change = async (body: object) =>
      world.api.ok("updateAgentBudgetPolicy", 200, {
        token,
        id: agent.id,
        body: { version: (await read()).version, ...body },
      });
    expect((await change({ budgetCents: 9_000 })).spendLimits).to.have.lengthOf(1);
    const week = { period: "week", limitCents: 100 };
    expect((await change({ spendLimits: [week] })).spendLimits[0]).to.include({ ...week, usedCents: 200 });
    const denied = await agent.pay({ amountCents: 1 });
    expect(denied.transaction.denialCode).to.equal("SPEND_LIMIT_EXCEEDED");
    expect(denied.transaction.denialDetails).to.include({ period: "week", limit: 100, remaining: 0 });
    expect((await change({ spendLimits: [] })).spendLimits).to.deep.equal([]);
    expect(await outcomeOf(agent, 1)).to.equal("approved");
    const twice = { version: 1, spendLimits: [week, week] };
    await world.api.refused("updateAgentBudgetPolicy", 400, "VALIDATION_FAILED", {
      token,
      id: agent.id,
      body: twice,
    });
  });

  it("a team's and a project's bind their agents, and a PUT without them keeps them", async () => {
    const budgets = new TestBudgets(world);
    const teamId = await budgets.newTeam();
    const agent = await world.agent({ teamId });
    const limits = [{ period: "year", limitCents: 300 }] as const;
    const { token } = world;
    const put = async (change: object) => {
      const { agents, capCents, version } = await budgets.team(teamId);
      const body = { agents, capCents, version, ...change };
      return world.api.ok("setTeamBudget", 200, { token, id: teamId, body });
    };
    expect((await put({ spendLimits: limits })).spendLimits[0]).to.include({ ...limits[0], usedCents: 0 });
    expect((await put({ capCents: 1_000 })).spendLimits).to.have.lengthOf(1);
    // As it was read, with all that it shows.
    expect(
      (await put({ spendLimits: (await budgets.team(teamId)).spendLimits })).spendLimits,
    ).to.have.lengthOf(1);
    expect(await outcomeOf(agent, 301)).to.equal("TEAM_SPEND_LIMIT_EXCEEDED");
    expect(await outcomeOf(agent, 200)).to.equal("approved");
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const budget = await mcp.ok(operations.getBudget.output, "get_budget");
    expect(budget.spendableCents).to.equal(100);
    expect(budget.team.spendLimits[0]).to.have.all.keys("period", "remainingCents", "startedAt", "resetsAt");
    expect(budget.team.spendLimits[0]).to.include({ period: "year", remainingCents: 100 });
    const payment = { rail: "card", merchant: "Acme", amountCents: 101 };
    const checked = await mcp.ok(operations.checkPayment.output, "check_payment", payment);
    expect(checked.denialCode).to.equal("TEAM_SPEND_LIMIT_EXCEEDED");
    expect(checked.denialDetails).to.include({ period: "year", remaining: 100 });
    await mcp.close();
  });

  it("the calendar is read, replaced by its version, and frees nothing that is counted", async () => {
    const { token } = world;
    const budgets = new TestBudgets(world);
    const id = await budgets.newProject();
    const teamId = await budgets.newTeam(id);
    const spendLimits = [{ period: "day", limitCents: 100 }];
    const agent = await world.agent({ teamId, spendLimits });
    expect(await outcomeOf(agent, 60)).to.equal("approved");
    expect(await world.api.ok("getProjectCalendar", 200, { token, id })).to.deep.equal({
      ...UTC,
      version: 1,
    });
    const body = { ...UTC, timezone: "Europe/Berlin", resetTime: "04:30", yearStartsIn: 4, version: 1 };
    const set = await world.api.ok("setProjectCalendar", 200, { token, id, body });
    expect(set).to.deep.equal({ ...body, version: 2 });
    expect(await world.api.ok("getProjectCalendar", 200, { token, id })).to.deep.equal(set);
    await world.api.refused("setProjectCalendar", 409, "STALE_CALENDAR", { token, id, body });
    expect(await outcomeOf(agent, 60)).to.equal("SPEND_LIMIT_EXCEEDED");
    const projects = world.service.db.collection<ProjectDocument>(COLLECTIONS.projects);
    await until("the project's record has it", async () => {
      const calendar = (await projects.findOne({ _id: id }))?.calendar;
      return calendar?.timezone === "Europe/Berlin" && calendar.version === 2 ? true : null;
    });
  });

  it("a limit that reaches 80 % is told once in its window, under its level", async () => {
    const agent = await world.agent({ spendLimits: [{ period: "quarter", limitCents: 100 }] });
    const events = world.service.db.collection<EventDocument>(COLLECTIONS.events);
    const warnings = () => events.find({ agentId: agent.id, type: "budget.threshold_reached" }).toArray();
    await agent.pay({ amountCents: 80 });
    const [warning] = await until("the warning", async () => {
      const found = await warnings();
      return found.length > 0 ? found : null;
    });
    expect(warning?.data.budget).to.include({
      level: "agent",
      id: agent.id,
      limit: "quarter",
      percent: 80,
      limitCents: 100,
      usedCents: 80,
    });
    await agent.pay({ amountCents: 1, merchant: "sandbox-refund" });
    expect(await warnings()).to.have.lengthOf(1);
  });

  it("a change is tried on past payments, and what is in force reproduces what was decided", async () => {
    const { token } = world;
    const budgets = new TestBudgets(world);
    const projectId = await budgets.newProject();
    const teamId = await budgets.newTeam(projectId);
    const agent = await world.agent({
      teamId,
      autoApprovalThresholdCents: 300,
      spendLimits: [{ period: "month", limitCents: 1_000 }],
    });
    expect(await outcomeOf(agent, 300)).to.equal("approved");
    expect(await outcomeOf(agent, 200)).to.equal("approved");
    const { approval } = await agent.pay({ amountCents: 400 });
    await world.api.ok("approveApproval", 200, { token, id: approval?.id ?? "" });
    expect(await outcomeOf(agent, 250)).to.equal("SPEND_LIMIT_EXCEEDED");
    const { transaction: small } = await agent.pay({ amountCents: 50, merchant: "Other Shop" });
    const tried = await world.api.ok("simulateAgentBudgetPolicy", 200, { token, id: agent.id, body: {} });
    expect(tried).to.deep.include({ payments: 5, unchanged: 5, moves: [], examples: [] });
    expect(tried.assumptions.join(" ")).to.include("not guessed");

    const policy = { spendLimits: [{ period: "month", limitCents: 600 }], autoApprovalThresholdCents: 250 };
    const tighter = { token, id: agent.id, body: { ...policy, range: 7 } };
    const { moves, unchanged } = await world.api.ok("simulateAgentBudgetPolicy", 200, tighter);
    // 300 is held and expires later: 200 is left, 400 is denied on all counts, 250 as before, and 50 fits.
    expect(moves).to.deep.equal([
      { from: "approved", to: "held", count: 1, cents: 300 },
      { from: "held", to: "denied", count: 1, cents: 400 },
    ]);
    expect(unchanged).to.equal(3);

    const capped = { token, id: projectId, body: { capCents: 500, teams: [] } };
    const ofProject = await world.api.ok("simulateProjectBudget", 200, capped);
    expect(ofProject.moves.map(({ from, to }) => `${from} ${to}`)).to.deep.equal([
      "approved denied",
      "held denied",
    ]);
    const noShop = {
      ...SIMULATED.simulateTeamRestrictions,
      recipients: { only: null, never: ["other shop"] },
    };
    const restricted = { token, id: teamId, body: noShop };
    const { examples } = await world.api.ok("simulateTeamRestrictions", 200, restricted);
    expect(examples).to.have.lengthOf(1);
    expect(examples[0]).to.include({
      transactionId: small.id,
      from: "approved",
      to: "denied",
      denialCode: "RECIPIENT_NOT_ALLOWED",
    });
    const rule = { type: "new_recipient", params: {} };
    const ruled = { token, id: projectId, body: { rules: [rule] } };
    const newPayees = await world.api.ok("simulateProjectApprovalRules", 200, ruled);
    expect(newPayees.examples.map(({ flaggedByRuleTypes }) => flaggedByRuleTypes)).to.deep.equal([
      ["new_recipient"],
      ["new_recipient"],
      ["new_recipient"],
    ]);
    const calendar = { token, id: projectId, body: SIMULATED.simulateProjectCalendar };
    const answers = await Promise.all([1, 2].map(() => world.api.call("simulateProjectCalendar", calendar)));
    expect(answers.map(({ status }) => status)).to.have.members([200, 429]);
  });
});
