import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { cardPayment, elevate, newWorld, type World } from "../support/world.ts";

describe("agents over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const create = (fields: Readonly<Record<string, unknown>> = {}) => ({
    token: world.token,
    body: { name: "Buyer", teamId: world.organization.teamId, budgetCents: 5_000, ...fields },
  });

  it("201 with the record, its key once and the block an MCP client is configured with", async () => {
    const fields = { description: "buys", autoApprovalThresholdCents: 0, scopes: ["get_budget"] };
    const { agent, apiKey, mcpConfigBlock } = await world.api.ok("createAgent", 201, create(fields));
    const { projectId, teamId, userId } = world.organization;
    expect(agent).to.deep.include({
      name: "Buyer",
      description: "buys",
      state: "active",
      projectId,
      teamId,
      scopes: ["get_budget"],
      budgetCents: 5e3,
      spentCents: 0,
      reservedCents: 0,
      autoApprovalThresholdCents: 0,
      version: 1,
      appearance: null,
      archivedAt: null,
      createdBy: {
        type: "user",
        id: userId,
      },
    });
    expect(agent.wallet?.chainCaip2).to.equal("eip155:31337");
    expect(agent.wallet?.address).to.match(/^0x[0-9a-fA-F]{40}$/);
    expect(agent.key).to.deep.include({ status: "active", lastUsedAt: null, last4: apiKey?.slice(-4) });
    expect(apiKey).to.match(/^sk_svc_live_[0-9A-Za-z]{46}$/);
    const read = await world.api.call("getAgent", { token: world.token, id: agent.id });
    const listed = await world.api.call("listAgents", { token: world.token });
    expect(JSON.stringify([read.body, listed.body])).not.to.include(apiKey);
    expect(mcpConfigBlock?.mcpServers["agent-spending-control"]).to.deep.equal({
      type: "http",
      url: `${world.service.baseUrl}/mcp`,
      headers: { Authorization: `Bearer ${String(apiKey)}` },
    });
  });

  it("takes the whole policy, so that no key is good before its limits; a replay must repeat it", async () => {
    const policy = {
      budgetCents: 5_000,
      autoApprovalThresholdCents: 400,
      perTransactionLimitCents: 300,
      dailySpendLimitCents: 1_000,
      hourlyVelocityLimit: 5,
      dailyVelocityLimit: 7,
    };
    const fields = { ...policy, idempotencyKey: randomUUID() };
    const { agent, apiKey } = await world.api.ok("createAgent", 201, create(fields));
    const denied = await world.api.ok("createPayment", 201, {
      token: apiKey ?? "",
      body: cardPayment({ amountCents: 301 }),
    });
    expect(denied.transaction.denialCode).to.equal("PER_TRANSACTION_LIMIT_EXCEEDED");
    const read = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id: agent.id });
    expect(read).to.deep.include({ ...policy, version: 1 });
    await world.api.ok("createAgent", 200, create(fields));
    const other = create({ ...fields, dailyVelocityLimit: 8 });
    await world.api.refused("createAgent", 422, "IDEMPOTENCY_KEY_REUSED", other);
    await world.api.refused(
      "createAgent",
      422,
      "IDEMPOTENCY_KEY_REUSED",
      create({ ...fields, hourlyVelocityLimit: null }),
    );
  });

  it("a null threshold means automatic within the budget, and what is left out is null", async () => {
    const { agent } = await world.api.ok("createAgent", 201, create({ autoApprovalThresholdCents: null }));
    expect(agent).to.deep.include({ autoApprovalThresholdCents: null, description: null, scopes: null });
  });

  const refusedFields: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ["name", { name: "" }],
    ["name", { name: "   " }],
    ["name", { name: "x".repeat(101) }],
    ["name", { name: undefined }],
    ["description", { description: "x".repeat(501) }],
    ["budgetCents", { budgetCents: -1 }],
    ["budgetCents", { budgetCents: 1.5 }],
    ["budgetCents", { budgetCents: "100" }],
    ["budgetCents", { budgetCents: null }],
    ["budgetCents", { budgetCents: 1_000_000_000_001 }],
    ["autoApprovalThresholdCents", { autoApprovalThresholdCents: -1 }],
    ["dailyVelocityLimit", { dailyVelocityLimit: -1 }],
    ["dailySpendLimitCents", { dailySpendLimitCents: 0.5 }],
    ["scopes.0", { scopes: ["pay_by_cheque"] }],
    ["teamId", { teamId: "general" }],
    ["scopes.0", { scopes: ["archive_agent"] }],
    ["scopes", { scopes: ["get_budget", "get_budget"] }],
    ["scopes", { scopes: [] }],
    ["idempotencyKey", { idempotencyKey: "" }],
    ["autoApprovalTresholdCents", { autoApprovalTresholdCents: 5 }],
    ["cursor", { cursor: "x" }],
  ];
  it("400 names the field that is wrong", async () => {
    for (const [path, fields] of refusedFields) {
      const error = await world.api.refused("createAgent", 400, "VALIDATION_FAILED", create(fields));
      expect(error.issues?.map((issue) => issue.path)).to.deep.equal([path]);
    }
  });

  it("a name of 100 characters counts characters, not UTF-16 units", async () => {
    const name = "😀".repeat(100);
    const { agent } = await world.api.ok("createAgent", 201, create({ name }));
    expect(agent.name).to.equal(name);
  });

  it("creating in an archived team is 409 CONTAINER_ARCHIVED", async () => {
    const other = await newWorld();
    const { teamId } = other.organization;
    const request = { token: other.token, body: { name: "Buyer", teamId, budgetCents: 1 } };
    const teams = other.service.db.collection<{ _id: string }>("teams");
    await teams.updateOne({ _id: teamId }, { $set: { archivedAt: new Date() } });
    await other.api.refused("createAgent", 409, "CONTAINER_ARCHIVED", request);
  });

  it("the budget policy shows usage as it is after the payment that was just answered", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 300 });
    await agent.pay({ amountCents: 200 });
    await agent.hold({ amountCents: 400 });
    const policy = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id: agent.id });
    const { usage, version } = policy;
    expect(version).to.equal(1);
    expect(usage).to.deep.equal({
      spentCents: 200,
      reservedCents: 400,
      remainingCents: 9400,
      todayCents: 600,
      lastHourCount: 2,
      todayCount: 2,
      increases: [],
    });
  });

  it("a policy change sets what it names, clears by null, raises the version; a stale one is 409", async () => {
    const { id } = await world.agent({ autoApprovalThresholdCents: 300 });
    await elevate(world);
    const patch = (body: object) => ({ token: world.token, id, body });
    const first = { version: 1, perTransactionLimitCents: 50, hourlyVelocityLimit: 3 };
    const changed = await world.api.ok("updateAgentBudgetPolicy", 200, patch(first));
    expect(changed).to.deep.include({
      version: 2,
      perTransactionLimitCents: 50,
      hourlyVelocityLimit: 3,
      autoApprovalThresholdCents: 300,
      budgetCents: 1e4,
      dailySpendLimitCents: null,
      dailyVelocityLimit: null,
    });
    await world.api.refused("updateAgentBudgetPolicy", 409, "VERSION_CONFLICT", patch(first));
    await world.api.refused("updateAgentBudgetPolicy", 409, "VERSION_CONFLICT", patch({ version: 3 }));
    const cleared = await world.api.ok(
      "updateAgentBudgetPolicy",
      200,
      patch({ version: 2, perTransactionLimitCents: null, budgetCents: 0 }),
    );
    expect(cleared).to.deep.include({ version: 3, perTransactionLimitCents: null, budgetCents: 0 });
    const read = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id });
    expect(read).to.deep.equal(cleared);
    for (const wrong of [
      { perTransactionLimitCents: 1 },
      { version: 3, budgetCents: null },
      { version: "3" },
      { version: 3, perTransactionLimitCents: -1 },
      { version: 3, perTransactionLimit: 1 },
    ]) {
      await world.api.refused("updateAgentBudgetPolicy", 400, "VALIDATION_FAILED", patch(wrong));
    }
    const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id });
    expect([agent.version, agent.budgetCents]).to.deep.equal([3, 0]);
  });
});
