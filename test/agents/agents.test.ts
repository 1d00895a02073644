import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { cardPayment, counts, demote, elevate, newWorld, type World } from "../support/world.ts";

const UNKNOWN_ID = "01890a5d-ac96-774b-bcce-b302099a8057";

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
    expect(mcpConfigBlock?.mcpServers["agent-spending-control"]).to.deep.equal({
      type: "http",
      url: `${world.service.baseUrl}/mcp`,
      headers: { Authorization: `Bearer ${String(apiKey)}` },
    });
  });

  it("the key is in no other answer and, in clear, in no collection", async () => {
    const { agent, apiKey } = await world.api.ok("createAgent", 201, create());
    const read = await world.api.call("getAgent", { token: world.token, id: agent.id });
    const listed = await world.api.call("listAgents", { token: world.token });
    expect(JSON.stringify([read.body, listed.body])).not.to.include(apiKey);
    const collections = await world.service.db.collections();
    const documents = await Promise.all(collections.map((collection) => collection.find().toArray()));
    expect(JSON.stringify(documents)).not.to.include(apiKey);
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
    ["scopes.0", { scopes: ["pay_x402_request"] }],
    ["teamId", { teamId: "general" }],
    ["scopes.0", { scopes: ["archive_agent"] }],
    ["scopes", { scopes: ["get_budget", "get_budget"] }],
    ["scopes", { scopes: [] }],
    ["idempotencyKey", { idempotencyKey: "" }],
    ["autoApprovalTresholdCents", { autoApprovalTresholdCents: 5 }],
    ["cursor", { cursor: "x" }],
  ];
  for (const [path, fields] of refusedFields) {
    it(`400 names the field that is wrong: ${JSON.stringify(fields).slice(0, 50)}`, async () => {
      const error = await world.api.refused("createAgent", 400, "VALIDATION_FAILED", create(fields));
      expect(error.issues?.map((issue) => issue.path)).to.deep.equal([path]);
    });
  }

  it("a name of 100 characters counts characters, not UTF-16 units", async () => {
    const name = "😀".repeat(100);
    const { agent } = await world.api.ok("createAgent", 201, create({ name }));
    expect(agent.name).to.equal(name);
  });

  it("an unknown team, and one of another organization, are 404 and create nothing", async () => {
    const other = await newWorld();
    const before = await world.service.db.collection("agents").countDocuments();
    for (const teamId of [UNKNOWN_ID, other.organization.teamId]) {
      await world.api.refused(
        "createAgent",
        404,
        "NOT_FOUND",
        create({ teamId, idempotencyKey: randomUUID() }),
      );
    }
    expect(await world.service.db.collection("agents").countDocuments()).to.equal(before);
  });

  it("creating is 409: CONTAINER_ARCHIVED in an archived team, ORG_NOT_READY when not ready", async () => {
    const [other, early] = [await newWorld(), await newWorld()];
    const { teamId } = other.organization;
    const request = { token: other.token, body: { name: "Buyer", teamId, budgetCents: 1 } };
    const teams = other.service.db.collection<{ _id: string }>("teams");
    await teams.updateOne({ _id: teamId }, { $set: { archivedAt: new Date() } });
    await other.api.refused("createAgent", 409, "CONTAINER_ARCHIVED", request);
    const organizations = early.service.db.collection<{ _id: string }>("organizations");
    const notReady = { $set: { status: "provisioning" } };
    await organizations.updateOne({ _id: early.organization.organizationId }, notReady);
    await early.api.refused("createAgent", 409, "ORG_NOT_READY", { ...request, token: early.token });
  });

  it("pause and resume are 200 again and again, and the record shows the state at once", async () => {
    const { id } = await world.agent();
    for (const [operation, state] of [
      ["pauseAgent", "paused"],
      ["pauseAgent", "paused"],
      ["resumeAgent", "active"],
      ["resumeAgent", "active"],
    ] as const) {
      const { agent } = await world.api.ok(operation, 200, { token: world.token, id });
      expect(agent.state).to.equal(state);
      expect(agent.key).not.to.equal(null);
      expect((await world.api.ok("getAgent", 200, { token: world.token, id })).agent.state).to.equal(state);
    }
  });

  it("a paused agent is 403 AGENT_PAUSED on every route, makes nothing, and pays once resumed", async () => {
    const agent = await world.agent();
    await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
    await world.api.refused("createPayment", 403, "AGENT_PAUSED", { token: agent.key, body: cardPayment() });
    await world.api.refused("listPayments", 403, "AGENT_PAUSED", { token: agent.key });
    const query = { agent_id: agent.id };
    const { transactions } = await world.api.ok("listTransactions", 200, { token: world.token, query });
    expect(transactions).to.deep.equal([]);
    await world.api.ok("resumeAgent", 200, { token: world.token, id: agent.id });
    expect((await agent.pay()).transaction.status).to.equal("approved");
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
    });
  });

  it("a policy change sets what it names, clears by null, raises the version; a stale one is 409", async () => {
    const own = await newWorld();
    const { id } = await own.agent({ autoApprovalThresholdCents: 300 });
    await elevate(own);
    const patch = (body: object) => ({ token: own.token, id, body });
    const first = { version: 1, perTransactionLimitCents: 50, hourlyVelocityLimit: 3 };
    const changed = await own.api.ok("updateAgentBudgetPolicy", 200, patch(first));
    expect(changed).to.deep.include({
      version: 2,
      perTransactionLimitCents: 50,
      hourlyVelocityLimit: 3,
      autoApprovalThresholdCents: 300,
      budgetCents: 1e4,
      dailySpendLimitCents: null,
      dailyVelocityLimit: null,
    });
    await own.api.refused("updateAgentBudgetPolicy", 409, "VERSION_CONFLICT", patch(first));
    await own.api.refused("updateAgentBudgetPolicy", 409, "VERSION_CONFLICT", patch({ version: 3 }));
    const cleared = await own.api.ok(
      "updateAgentBudgetPolicy",
      200,
      patch({ version: 2, perTransactionLimitCents: null, budgetCents: 0 }),
    );
    expect(cleared).to.deep.include({ version: 3, perTransactionLimitCents: null, budgetCents: 0 });
    const read = await own.api.ok("getAgentBudgetPolicy", 200, { token: own.token, id });
    expect(read).to.deep.equal(cleared);
    for (const wrong of [
      { perTransactionLimitCents: 1 },
      { version: 3, budgetCents: null },
      { version: "3" },
      { version: 3, perTransactionLimitCents: -1 },
      { version: 3, perTransactionLimit: 1 },
    ]) {
      await own.api.refused("updateAgentBudgetPolicy", 400, "VALIDATION_FAILED", patch(wrong));
    }
    const { agent } = await own.api.ok("getAgent", 200, { token: own.token, id });
    expect([agent.version, agent.budgetCents]).to.deep.equal([3, 0]);
  });

  it("unknown and foreign agents are 404 on every route, before a stale version is 409", async () => {
    const other = await newWorld();
    await elevate(world);
    const { id } = await other.agent();
    const before = await counts(world);
    for (const request of [
      { token: world.token, id },
      { token: world.token, id: UNKNOWN_ID },
    ]) {
      await world.api.refused("getAgent", 404, "NOT_FOUND", request);
      await world.api.refused("getAgentBudgetPolicy", 404, "NOT_FOUND", request);
      const body = { version: 99, budgetCents: 0 };
      await world.api.refused("updateAgentBudgetPolicy", 404, "NOT_FOUND", { ...request, body });
      await world.api.refused("pauseAgent", 404, "NOT_FOUND", request);
      await world.api.refused("resumeAgent", 404, "NOT_FOUND", request);
    }
    expect(await counts(world)).to.deep.equal(before);
    const { agent } = await other.api.ok("getAgent", 200, { token: other.token, id });
    expect([agent.state, agent.budgetCents, agent.version]).to.deep.equal(["active", 10_000, 1]);
  });

  it("a member reads, pauses and resumes, and neither creates agents nor changes policies", async () => {
    const own = await newWorld();
    const { id } = await own.agent();
    await elevate(own);
    await demote(own, "member");
    const { token } = own;
    const { teamId } = own.organization;
    await own.api.refused("createAgent", 403, "ROLE_REQUIRED", {
      token,
      body: { name: "x", teamId, budgetCents: 1 },
    });
    await own.api.refused("updateAgentBudgetPolicy", 403, "ROLE_REQUIRED", {
      token,
      id,
      body: { version: 1 },
    });
    for (const operation of ["getAgent", "getAgentBudgetPolicy", "pauseAgent", "resumeAgent"] as const) {
      await own.api.ok(operation, 200, { token, id });
    }
    await demote(own, "admin");
    await own.api.ok("updateAgentBudgetPolicy", 200, { token, id, body: { version: 1 } });
  });
});
