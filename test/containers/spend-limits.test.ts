import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { COLLECTIONS, type EventDocument, type ProjectDocument } from "../../src/store/documents.ts";
import { McpCaller } from "../mcp/support.ts";
import { prove } from "../support/access-proofs.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { askRaise, raiseOrder } from "../support/raises.ts";
import { SIMULATED, UTC } from "../support/simulations.ts";
import { elevate, newWorld, organizationKey, type TestAgent, until, type World } from "../support/world.ts";

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
    const blind = await organizationKey(world, { scopes: ["teams:write"] });
    const unnamed = await world.api.ok("simulateTeamRestrictions", 200, {
      ...restricted,
      token: blind.token,
    });
    expect([unnamed.moves, unnamed.examples], "who may not read payments").to.deep.equal([
      [{ from: "approved", to: "denied", count: 1, cents: 50 }],
      [],
    ]);
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

/** What a raise does to limits is the ledger's; here people and agents speak of it. */
describe("raises", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const ask = (agent: TestAgent, change: object = {}) =>
    world.api.ok("requestRaise", 201, { token: agent.key, body: raiseOrder(change) });
  const grant = (id: string, body: object = {}) =>
    world.api.ok("grantRaiseRequest", 200, { token: world.token, id, body });
  const limits = { spendLimits: [{ period: "month", limitCents: 500 }], budgetCents: 600 } as const;

  it("a denial says that one is possible; granted, it makes room at all levels until it ends", async () => {
    const budgets = new TestBudgets(world);
    const teamId = await budgets.newTeam();
    const body = { capCents: 550, agents: [], spendLimits: [{ period: "day", limitCents: 400 }], version: 1 };
    await world.api.ok("setTeamBudget", 200, { token: world.token, id: teamId, body });
    const agent = await world.agent({ teamId, ...limits });
    const denied = await agent.pay({ amountCents: 700 });
    const url = `${world.service.baseUrl}/agents/${agent.id}`;
    expect(denied.raise).to.deep.equal({ possible: true, url });
    const { raiseRequest: asked } = await ask(agent, {
      amountCents: 700,
      transactionId: denied.transaction.id,
    });
    expect(
      asked.shortfalls.map(({ level, limit, missingCents }) => [level, limit, missingCents]),
    ).to.deep.equal([
      ["agent", "budget", 100],
      ["agent", "month", 200],
      ["team", "cap", 150],
      ["team", "day", 300],
    ]);
    // Others' limits are not the agent's to know.
    expect(JSON.stringify(asked)).not.to.include("limitCents");
    const endsAt = new Date(Date.now() + 3_600_000).toISOString();
    const { raiseRequest: granted } = await grant(asked.id, { endsAt });
    expect(granted).to.include({ status: "granted", agentId: agent.id });
    expect(granted.raised.map((each) => each.endsAt)).to.deep.equal([null, endsAt, null, endsAt]);
    const { budgetCents, spendLimits, usage } = await world.api.ok("getAgentBudgetPolicy", 200, {
      token: world.token,
      id: agent.id,
    });
    expect(budgetCents).to.equal(700);
    expect(usage.increases).to.deep.equal([{ id: asked.id, limit: "month", cents: 200, endsAt }]);
    // What is set is shown as it was set, so that sending it back raises nothing for good.
    expect(spendLimits[0]).to.include({ limitCents: 500, remainingCents: 700 });
    expect(await outcomeOf(agent, 700)).to.equal("approved");
    await world.api.refused("grantRaiseRequest", 409, "RAISE_ALREADY_RESOLVED", {
      token: world.token,
      id: asked.id,
    });
  });

  it("one is open at a time and five a day; a repeated request reads the person's answer", async () => {
    const agent = await world.agent(limits);
    const { key, id } = agent;
    const asking = (body: object) => ({ token: key, body });
    const body = raiseOrder();
    const asked = await world.api.ok("requestRaise", 201, asking(body));
    await world.api.refused("requestRaise", 409, "RAISE_PENDING", asking(raiseOrder()));
    await world.api.refused(
      "requestRaise",
      422,
      "IDEMPOTENCY_KEY_REUSED",
      asking({ ...body, amountCents: 1 }),
    );
    const waiting = world.api.ok("requestRaise", 200, { ...asking(body), query: { waitSeconds: "20" } });
    const refusal = { feedback: "Use the cheaper shop." };
    const refuse = { token: world.token, id: asked.raiseRequest.id, body: refusal };
    await world.api.ok("refuseRaiseRequest", 200, refuse);
    expect(await waiting).to.deep.include({ replayed: true });
    expect((await waiting).raiseRequest).to.include({ status: "refused", ...refusal });
    await world.api.refused(
      "requestRaise",
      409,
      "RAISE_NOT_NEEDED",
      asking(raiseOrder({ amountCents: 600 - 100 })),
    );
    for (let more = 0; more < 4; more += 1) {
      const { raiseRequest } = await ask(agent);
      await world.api.ok("refuseRaiseRequest", 200, { ...refuse, id: raiseRequest.id });
    }
    const full = await world.api.refused("requestRaise", 429, "RAISE_LIMIT_REACHED", asking(raiseOrder()));
    expect(full.retry_after_seconds).to.be.within(86_000, 86_400);
    const { raiseRequests } = await world.api.ok("listRaiseRequests", 200, {
      token: world.token,
      query: { agent_id: id, status: "refused" },
    });
    expect(raiseRequests).to.have.lengthOf(5);
  });

  it("granted before somebody set a limit and finished later, it raises nothing and stays open", async () => {
    const { token } = world;
    const agent = await world.agent(limits);
    const id = await askRaise(world, agent);
    const basis = { grants: 0, policyVersion: 1, teamVersion: 1, projectVersion: 1 };
    const decision = { by: { userId: agent.id, name: "Ada" }, at: new Date(), endsAt: null, basis };
    await prove(world.service.db, "raiseRequest", { _id: id }, { decision });
    const body = { version: 1, budgetCents: 700 };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token, id: agent.id, body });
    const { raiseRequest } = await world.api.ok("getRaiseRequest", 200, { token, id });
    expect(raiseRequest).to.deep.include({ status: "pending", raised: [] });
    const { budgetCents } = await world.api.ok("getAgentBudgetPolicy", 200, { token, id: agent.id });
    expect(budgetCents).to.equal(700);
    expect((await grant(id)).raiseRequest.status).to.equal("granted");
  });

  it("granted over a day ago and cut short, it is granted if the ledger did so, else open", async () => {
    const { token } = world;
    const agents = [await world.agent(limits), await world.agent(limits)];
    const ids = await Promise.all(agents.map((agent) => askRaise(world, agent)));
    const [done = "", lost = ""] = ids;
    await grant(done);
    for (const [place, id] of ids.entries()) {
      const userId = agents[place]?.id ?? "";
      const basis = { grants: 0, policyVersion: 1, teamVersion: 1, projectVersion: 1 };
      const decision = {
        by: { userId, name: "Ada" },
        at: new Date(Date.now() - 90_000_000),
        endsAt: null,
        basis,
      };
      await prove(
        world.service.db,
        "raiseRequest",
        { _id: id },
        { status: "pending", decision, openOf: userId },
      );
    }
    const body = { feedback: "Not now." };
    await world.api.refused("refuseRaiseRequest", 409, "RAISE_ALREADY_RESOLVED", { token, id: done, body });
    const { raiseRequest } = await world.api.ok("refuseRaiseRequest", 200, { token, id: lost, body });
    expect(raiseRequest).to.deep.include({ status: "refused", raised: [] });
  });

  it("granted too late, it is 409 and closed: the agent is archived, or nothing lacks any more", async () => {
    const { token } = world;
    const [gone, rich] = [await world.agent(limits), await world.agent(limits)];
    const [ofGone, ofRich] = [await askRaise(world, gone), await askRaise(world, rich, { amountCents: 550 })];
    await world.api.ok("archiveAgent", 200, { token, id: gone.id });
    const { version } = await world.api.ok("getAgentBudgetPolicy", 200, { token, id: rich.id });
    const body = { version, spendLimits: [] };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token, id: rich.id, body });
    await world.api.refused("grantRaiseRequest", 409, "AGENT_ARCHIVED", { token, id: ofGone });
    await world.api.refused("grantRaiseRequest", 409, "RAISE_NOT_NEEDED", { token, id: ofRich });
    for (const id of [ofGone, ofRich]) {
      const { raiseRequest } = await world.api.ok("getRaiseRequest", 200, { token, id });
      expect(raiseRequest.status).to.equal("closed");
    }
    expect((await ask(rich)).raiseRequest.status).to.equal("pending");
  });
});
