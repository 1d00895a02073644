import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { httpFailure, McpCaller } from "../mcp/support.ts";
import { atOnce } from "../support/at-once.ts";
import { expectBooksAgree } from "../support/books.ts";
import { archive, expectDead, expectEvents, readAgent, revokeKey } from "../support/life.ts";
import { cardPayment, elevate, newWorld, tally, times, until, type World } from "../support/world.ts";

const { getBudget } = operations;

/** A slow payment settles after 3 s; the actor looks after what no caller waits for every 10 s. */
const SETTLED_MS = 120_000;
/** What the engine's clock, which decisions have their time from, may be off this process's. */
const CLOCKS_MS = 1_000;

describe("a person archives an agent", () => {
  let world: World;
  // An organization each: the routes have caps per minute and user.
  beforeEach(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const owner = (agent: { readonly id: string }) => ({ token: world.token, id: agent.id });
  const transactionsOf = async ({ id }: { readonly id: string }) => {
    const query = { agent_id: id };
    return (await world.api.ok("listTransactions", 200, { token: world.token, query })).transactions;
  };

  it("200 with the archived record: its key gone, all else kept", async () => {
    const agent = await world.agent({ description: "kept" });
    await agent.pay();
    const before = await readAgent(world, agent);
    const askedAt = Date.now();
    const answer = await archive(world, agent);
    const answeredAt = Date.now();
    expect(answer.walletsFailed).to.deep.equal([]);
    const { archivedAt, updatedAt, ...record } = answer.agent;
    const { archivedAt: _none, updatedAt: _then, ...was } = before;
    expect(record).to.deep.equal({ ...was, state: "archived", key: null });
    expect(Date.parse(archivedAt ?? "")).to.be.within(askedAt - CLOCKS_MS, answeredAt + CLOCKS_MS);
    expect(updatedAt >= (archivedAt ?? "")).to.equal(true);
    expect(await readAgent(world, agent)).to.deep.include({ state: "archived", key: null, archivedAt });
  });

  it("its key is 401 at once, over REST and of an MCP client that is connected", async () => {
    const agent = await world.agent();
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    await mcp.ok(getBudget.output, "get_budget");
    await archive(world, agent);
    const failure: unknown = await mcp.call("get_budget").catch((error: unknown) => error);
    expect(httpFailure.parse(failure).code).to.equal(401);
    await mcp.close();
    const body = cardPayment();
    await world.api.refused("createPayment", 401, "UNAUTHORIZED", { token: agent.key, body });
    await expectDead(world, agent.key);
    expect(await transactionsOf(agent)).to.deep.equal([]);
  });

  for (const state of ["active", "paused", "without a key", "paused and without a key"]) {
    it(`whose agent is ${state}: 200, again the same record, no second event`, async () => {
      const agent = await world.agent();
      if (state.includes("paused")) await world.api.ok("pauseAgent", 200, owner(agent));
      if (state.includes("without")) await revokeKey(world, agent);
      const first = await archive(world, agent);
      const answers = await Promise.all(times(5, () => archive(world, agent)));
      for (const { agent: record, walletsFailed } of answers) {
        expect(walletsFailed).to.deep.equal([]);
        expect(record).to.deep.equal(first.agent);
      }
      const paused = state.includes("paused") ? { "agent.paused": 1 } : {};
      await expectEvents(world, agent, { "agent.created": 1, "agent.archived": 1, ...paused });
    });
  }

  it("20 times at once: all 200, one event", async () => {
    const agent = await world.agent();
    const answers = await atOnce(20, () => world.api.call("archiveAgent", owner(agent)));
    expect(tally(answers.map(({ status }) => status))).to.deep.equal({ "200": 20 });
    await expectEvents(world, agent, { "agent.created": 1, "agent.archived": 1 });
  });

  it("holds are denied without a resolver, at once: reservations released, no event", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const held = await Promise.all(times(5, () => agent.hold()));
    expect((await readAgent(world, agent)).reservedCents).to.equal(500);
    const askedAt = Date.now();
    const { agent: record } = await archive(world, agent);
    const answeredAt = Date.now();
    expect([record.reservedCents, record.spentCents]).to.deep.equal([0, 0]);
    const query = { agent_id: agent.id };
    const pending = await world.api.ok("listPendingApprovals", 200, { token: world.token, query });
    expect(pending.approvals).to.deep.equal([]);
    const { approvals } = await world.api.ok("listCompletedApprovals", 200, { token: world.token, query });
    expect(approvals.map(({ id }) => id).toSorted()).to.deep.equal(
      held.map(({ approvalId }) => approvalId).toSorted(),
    );
    for (const approval of approvals) {
      expect(approval).to.deep.include({ resolution: "denied", resolvedBy: null, feedback: null });
      expect(Date.parse(approval.resolvedAt ?? "")).to.be.within(askedAt - CLOCKS_MS, answeredAt + CLOCKS_MS);
    }
    for (const transaction of await transactionsOf(agent)) {
      expect(transaction).to.deep.include({
        status: "denied",
        denialCode: "AGENT_ARCHIVED",
        denialDetails: null,
      });
    }
    for (const { approvalId } of held) {
      await world.api.refused("approveApproval", 409, "APPROVAL_ALREADY_RESOLVED", {
        token: world.token,
        id: approvalId,
      });
    }
    await expectEvents(world, agent, { "agent.created": 1, "approval.requested": 5, "agent.archived": 1 });
    await expectBooksAgree(world, agent);
  });

  it("what a person had decided stays as it was decided", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const [approved, denied] = [await agent.hold(), await agent.hold()];
    await world.api.ok("approveApproval", 200, { token: world.token, id: approved.approvalId });
    const body = { feedback: "no" };
    await world.api.ok("denyApproval", 200, { token: world.token, id: denied.approvalId, body });
    await archive(world, agent);
    const found = (await transactionsOf(agent)).map(({ denialCode, id, status }) => [id, status, denialCode]);
    expect(found).to.have.deep.members([
      [approved.transactionId, "approved", null],
      [denied.transactionId, "denied", "APPROVAL_DENIED"],
    ]);
  });

  it("what was sent goes on to its end: a payment in flight settles once, and is spent", async () => {
    const agent = await world.agent();
    const { transaction } = await agent.pay({ merchant: "sandbox-slow" });
    expect(transaction.status).to.equal("pending");
    expect((await archive(world, agent)).agent.reservedCents).to.equal(100);
    await until(
      "it is settled",
      async () => ((await transactionsOf(agent))[0]?.status === "approved" ? true : null),
      SETTLED_MS,
    );
    await until("the record follows", async () =>
      (await readAgent(world, agent)).reservedCents === 0 ? true : null,
    );
    const books = await expectBooksAgree(world, agent);
    expect([books.spentCents, books.entries]).to.deep.equal([100, 1]);
    const events = { "agent.created": 1, "agent.archived": 1, "transaction.completed": 1 };
    await expectEvents(world, agent, events);
  });

  it("it is final: pause, resume, change, rename and mint are 409 AGENT_ARCHIVED", async () => {
    const agent = await world.agent();
    const { agent: archived } = await archive(world, agent);
    const refused = [
      ["pauseAgent", {}],
      ["resumeAgent", {}],
      ["mintAgentKey", {}],
      ["revokeAgentKey", {}],
      ["updateAgent", { body: { name: "Another" } }],
      ["updateAgent", { body: { description: null } }],
      ["updateAgent", { body: { appearance: { color: "#102030", icon: "x" } } }],
      ["updateAgentBudgetPolicy", { body: { version: 1, budgetCents: 1 } }],
      ["updateAgentBudgetPolicy", { body: { version: 99, budgetCents: 1 } }],
    ] as const;
    for (const [operation, fields] of refused) {
      await world.api.refused(operation, 409, "AGENT_ARCHIVED", { ...owner(agent), ...fields });
    }
    expect({ ...(await readAgent(world, agent)), updatedAt: "" }).to.deep.equal({
      ...archived,
      updatedAt: "",
    });
    await world.api.ok("getAgentBudgetPolicy", 200, owner(agent));
    await expectEvents(world, agent, { "agent.created": 1, "agent.archived": 1 });
  });

  it("needs role and step-up; refused, the agent lives", async () => {
    const own = await newWorld();
    const agent = await own.agent();
    const request = { token: own.token, id: agent.id };
    await own.api.refused("archiveAgent", 403, "STEP_UP_REQUIRED", request);
    await own.api.ok("listPayments", 200, { token: agent.key });
    expect((await readAgent(own, agent)).state).to.equal("active");
  });

  it("lists show it; `state` narrows to it or leaves it out", async () => {
    const own = await newWorld();
    const [live, paused, gone] = [await own.agent(), await own.agent(), await own.agent()];
    await own.api.ok("pauseAgent", 200, { token: own.token, id: paused.id });
    await archive(own, gone);
    const listed = async (query: Record<string, string>) =>
      (await own.api.ok("listAgents", 200, { token: own.token, query })).agents.map(({ id }) => id);
    expect(await listed({})).to.deep.equal([gone.id, paused.id, live.id]);
    expect(await listed({ state: "archived" })).to.deep.equal([gone.id]);
    expect(await listed({ state: "active" })).to.deep.equal([live.id]);
    expect(await listed({ state: "paused" })).to.deep.equal([paused.id]);
  });

  it("a team is not empty while an agent of it lives, and can be archived once all are", async () => {
    const own = await newWorld();
    const { team } = await own.api.ok("createTeam", 201, { token: own.token, body: { name: "Team" } });
    const agents = [await own.agent({ teamId: team.id }), await own.agent({ teamId: team.id })];
    await elevate(own);
    const request = { token: own.token, id: team.id };
    for (const agent of agents) {
      await own.api.refused("archiveTeam", 409, "CONTAINER_NOT_EMPTY", request);
      await archive(own, agent);
    }
    await own.api.ok("archiveTeam", 200, request);
    expect((await archive(own, agents[0] ?? { id: "" })).agent.state).to.equal("archived");
  });

  it("its transactions are still listed and its approvals still read", async () => {
    const agent = await world.agent();
    const { transaction } = await agent.pay();
    await archive(world, agent);
    expect((await transactionsOf(agent)).map(({ id }) => id)).to.deep.equal([transaction.id]);
  });
});
