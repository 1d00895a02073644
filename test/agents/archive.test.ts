import { expect } from "chai";
import { expectBooksAgree } from "../support/books.ts";
import { archive, expectDead, expectEvents, readAgent, revokeKey } from "../support/life.ts";
import { elevate, newWorld, times, until, type World } from "../support/world.ts";

/** A slow payment settles after 3 s; the actor looks after what no caller waits for every 10 s. */
const SETTLED_MS = 120_000;
/** What the engine's clock, which decisions have their time from, may be off this process's. */
const CLOCKS_MS = 1_000;

describe("a person archives an agent", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });
  beforeEach(() => elevate(world));

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
    await expectDead(world, agent.key);
  });

  for (const state of ["active", "paused and without a key"]) {
    it(`whose agent is ${state}: 200, again the same record, no second event`, async () => {
      const agent = await world.agent();
      if (state.includes("paused")) await world.api.ok("pauseAgent", 200, owner(agent));
      if (state.includes("without")) await revokeKey(world, agent);
      const first = await archive(world, agent);
      const answers = await Promise.all(times(3, () => archive(world, agent)));
      for (const { agent: record, walletsFailed } of answers) {
        expect(walletsFailed).to.deep.equal([]);
        expect(record).to.deep.equal(first.agent);
      }
      const paused = state.includes("paused") ? { "agent.paused": 1 } : {};
      await expectEvents(world, agent, { "agent.created": 1, "agent.archived": 1, ...paused });
    });
  }

  it("holds are denied without a resolver, at once: reservations released, one event each", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const held = await Promise.all(times(2, () => agent.hold()));
    expect((await readAgent(world, agent)).reservedCents).to.equal(200);
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
    await expectEvents(world, agent, {
      "agent.created": 1,
      "approval.requested": 2,
      "approval.cancelled": 2,
      "agent.archived": 1,
    });
    await expectBooksAgree(world, agent);
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

  it("lists show it, and its transactions; `state` narrows to it or leaves it out", async () => {
    const [live, gone] = [await world.agent(), await world.agent()];
    const { transaction } = await gone.pay();
    await archive(world, gone);
    const listed = async (state: string) =>
      (await world.api.ok("listAgents", 200, { token: world.token, query: { state } })).agents.map(
        ({ id }) => id,
      );
    expect((await transactionsOf(gone)).map(({ id }) => id)).to.deep.equal([transaction.id]);
    expect(await listed("archived")).to.include(gone.id);
    expect(await listed("active"))
      .to.include(live.id)
      .and.not.include(gone.id);
  });
});
