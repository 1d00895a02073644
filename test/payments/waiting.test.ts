import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import { cardPayment, newWorld, type TestAgent, until, type World } from "../support/world.ts";

const HELD = { autoApprovalThresholdCents: 0 };

describe("answers that wait for a decision", () => {
  let world: World;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    agent = await world.agent(HELD);
  });

  /** Pays and waits; the approval's id is known as soon as it is listed, and with it the payment can be read. */
  async function held(waitSeconds: number) {
    const idempotencyKey = randomUUID();
    const answered = world.api.ok("createPayment", 201, {
      token: agent.key,
      query: { waitSeconds: String(waitSeconds) },
      body: cardPayment({ idempotencyKey, purpose: idempotencyKey }),
    });
    const { id: approvalId, transactionId } = await until("the approval is listed", async () => {
      const { approvals } = await world.api.ok("listPendingApprovals", 200, { token: world.token });
      return approvals.find(({ purpose }) => purpose === idempotencyKey) ?? null;
    });
    return { answered, approvalId, transactionId };
  }

  it("a held payment says where a person decides, and no longer once they have", async () => {
    const { approval, approvalUrl, transaction } = await agent.pay();
    expect(approvalUrl).to.equal(`${world.service.baseUrl}/approvals/${approval?.id ?? ""}`);
    const { id } = transaction;
    await world.api.ok("denyApproval", 200, {
      token: world.token,
      id: approval?.id ?? "",
      body: { feedback: "no" },
    });
    const read = await world.api.ok("getPayment", 200, { token: agent.key, id });
    expect(read.approvalUrl).to.equal(null);
  });

  it("a payment that is not held is answered at once and has no such page", async () => {
    const free = await world.agent();
    const began = performance.now();
    const { approvalUrl, transaction } = await world.api.ok("createPayment", 201, {
      token: free.key,
      query: { waitSeconds: "45" },
      body: cardPayment(),
    });
    expect([transaction.status, approvalUrl]).to.deep.equal(["approved", null]);
    expect(performance.now() - began).to.be.below(30_000);
  });

  it("approved while its agent waits, the payment is answered approved, not pending", async () => {
    const { answered, approvalId } = await held(45);
    await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
    const { approval, transaction } = await answered;
    expect([transaction.status, approval?.resolution]).to.deep.equal(["approved", "approved"]);
  });

  it("denied while its agent waits, it is answered with what the person said", async () => {
    const { answered, approvalId } = await held(45);
    await world.api.ok("denyApproval", 200, {
      token: world.token,
      id: approvalId,
      body: { feedback: "Not this shop." },
    });
    const { approval, transaction } = await answered;
    expect([transaction.status, approval?.feedback]).to.deep.equal(["denied", "Not this shop."]);
  });

  it("cancelled by its agent while it waits, it is answered so", async () => {
    const { answered, transactionId } = await held(45);
    await world.api.ok("cancelPayment", 200, { token: agent.key, id: transactionId });
    expect((await answered).transaction.denialCode).to.equal("CANCELLED_BY_AGENT");
  });

  it("it stays undecided: it is answered pending once the time is up, and not before", async () => {
    const { transactionId } = await agent.hold();
    const began = performance.now();
    const { approval, transaction } = await world.api.ok("getPayment", 200, {
      token: agent.key,
      id: transactionId,
      query: { waitSeconds: "2" },
    });
    expect(performance.now() - began).to.be.at.least(1_900);
    expect([transaction.status, approval?.resolution]).to.deep.equal(["pending", undefined]);
  });

  it("a replay that waits is a replay, and makes no second payment", async () => {
    const body = cardPayment();
    const first = await world.api.ok("createPayment", 201, { token: agent.key, body });
    const replayed = world.api.ok("createPayment", 200, {
      token: agent.key,
      body,
      query: { waitSeconds: "45" },
    });
    await world.api.ok("approveApproval", 200, { token: world.token, id: first.approval?.id ?? "" });
    expect((await replayed).transaction).to.include({ id: first.transaction.id, status: "approved" });
  });

  it("a payment of another agent is not waited for", async () => {
    const other = await world.agent(HELD);
    const { transactionId } = await other.hold();
    await world.api.refused("getPayment", 404, "NOT_FOUND", {
      token: agent.key,
      id: transactionId,
      query: { waitSeconds: "45" },
    });
  });

  for (const waitSeconds of ["-1", "46", "1.5", "soon", ""]) {
    it(`waitSeconds "${waitSeconds}" is refused by its name`, async () => {
      const { issues } = await world.api.refused("getPayment", 400, "VALIDATION_FAILED", {
        token: agent.key,
        id: `txn_${"0".repeat(26)}`,
        query: { waitSeconds },
      });
      expect(issues?.map(({ path }) => path)).to.deep.equal(["waitSeconds"]);
    });
  }

  it("over MCP the payment tools and get_payment wait in the same way", async () => {
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const { approvalId, transactionId } = await agent.hold();
    const { output } = operations.getPayment;
    const reading = mcp.ok(output, "get_payment", { transactionId, waitSeconds: 45 });
    await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
    expect((await reading).transaction.status).to.equal("approved");
    await mcp.refused("get_payment", "VALIDATION_FAILED", { transactionId, waitSeconds: 46 });
    await mcp.close();
  });

  it("the many who wait for one payment are all answered", async () => {
    const { approvalId, transactionId } = await agent.hold();
    const waiting = Array.from({ length: 8 }, () =>
      world.api.ok("getPayment", 200, {
        token: agent.key,
        id: transactionId,
        query: { waitSeconds: "45" },
      }),
    );
    // A denial is the end; what is approved may take its rail longer than it is waited for.
    const body = { feedback: "no" };
    await world.api.ok("denyApproval", 200, { token: world.token, id: approvalId, body });
    for (const { transaction } of await Promise.all(waiting)) expect(transaction.status).to.equal("denied");
  });
});
