import { expect } from "chai";
import { type ApprovalDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { onceReachable } from "../support/api.ts";
import { atOnce, expectDoneOnce, expectOnce } from "../support/at-once.ts";
import { expectBooksAgree } from "../support/books.ts";
import { finalPayment } from "../support/chain.ts";
import { restricting } from "../support/restrictions.ts";
import { shortOrSoak } from "../support/soak.ts";
import { elevate, newWorld, tally, type TestAgent, times, type World } from "../support/world.ts";

const APPROVAL_OF_NOBODY = `apr_${"0".repeat(26)}`;

describe("approvals over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const asksAlways = (fields: Readonly<Record<string, unknown>> = {}): Promise<TestAgent> =>
    world.agent({ autoApprovalThresholdCents: 0, ...fields });
  const approve = (id: string) => ({ token: world.token, id });
  const deny = (id: string, feedback = "too dear") => ({ token: world.token, id, body: { feedback } });
  const payment = (agent: TestAgent, id: string) => world.api.ok("getPayment", 200, { token: agent.key, id });

  it("a held payment is queued with all that a person needs to decide, and nothing is charged", async () => {
    const agent = await asksAlways({ name: "Asker" });
    const { approval, transaction } = await agent.pay({ amountCents: 250, purpose: "a chair" });
    expect([transaction.status, transaction.denialCode]).to.deep.equal(["pending", null]);
    const { organization } = world;
    expect(approval).to.deep.include({
      transactionId: transaction.id,
      agentId: agent.id,
      agentName: "Asker",
      amountCents: 250,
      teamId: organization.teamId,
      projectId: organization.projectId,
      currency: "USD",
      rail: "card",
      recipient: "shop",
      purpose: "a chair",
      flaggedByRuleTypes: ["agent_threshold"],
      budgetContext: {
        budgetCents: 1e4,
        spentCents: 0,
        reservedCents: 250,
        remainingCents: 9750,
      },
    });
    expect(approval).not.to.have.any.keys("resolution", "resolvedAt", "resolvedBy", "feedback");
    const window = Date.parse(approval?.expiresAt ?? "") - Date.parse(approval?.createdAt ?? "");
    expect(window).to.equal(86_400_000);
    const query = { agent_id: agent.id };
    const { approvals } = await world.api.ok("listPendingApprovals", 200, { token: world.token, query });
    expect(approvals).to.deep.equal([approval]);
    const books = await expectBooksAgree(world, agent);
    expect([books.entries, books.reservedCents]).to.deep.equal([0, 250]);
  });

  it("approve pays it: 200 with resolution, who and when, and the agent reads approved", async () => {
    const agent = await asksAlways();
    const { approvalId, transactionId } = await agent.hold();
    const { approval } = await world.api.ok("approveApproval", 200, approve(approvalId));
    const resolvedBy = { userId: world.organization.userId, name: approval.resolvedBy?.name };
    expect(approval).to.deep.include({ resolution: "approved", resolvedBy, feedback: null });
    const paid = await payment(agent, transactionId);
    expect(paid.transaction.status).to.equal("approved");
    expect(paid.approval).to.deep.equal(approval);
    const query = { agent_id: agent.id };
    const completed = await world.api.ok("listCompletedApprovals", 200, { token: world.token, query });
    expect(completed.approvals).to.deep.equal([approval]);
    const pending = await world.api.ok("listPendingApprovals", 200, { token: world.token, query });
    expect(pending.approvals).to.deep.equal([]);
    expect((await expectBooksAgree(world, agent)).spentCents).to.equal(100);
  });

  it("deny releases the amount and keeps the feedback, which is required: 1 to 1,000 characters", async () => {
    const agent = await asksAlways();
    const { approvalId, transactionId } = await agent.hold();
    for (const body of [
      undefined,
      {},
      { feedback: "" },
      { feedback: " " },
      { feedback: "x".repeat(1_001) },
    ]) {
      const request = { ...approve(approvalId), ...(body === undefined ? {} : { body }) };
      await world.api.refused("denyApproval", 400, "VALIDATION_FAILED", request);
    }
    const feedback = "x".repeat(1_000);
    const { approval } = await world.api.ok("denyApproval", 200, deny(approvalId, feedback));
    expect(approval).to.deep.include({ resolution: "denied", feedback });
    const denied = (await payment(agent, transactionId)).transaction;
    expect([denied.status, denied.denialCode, denied.denialDetails]).to.deep.equal([
      "denied",
      "APPROVAL_DENIED",
      null,
    ]);
    expect((await expectBooksAgree(world, agent)).reservedCents).to.equal(0);
  });

  it("many are decided in one call, each by itself: a refused one keeps no other from it", async () => {
    const agent = await asksAlways();
    const [first, second, third] = [await agent.hold(), await agent.hold(), await agent.hold()];
    await world.api.ok("denyApproval", 200, deny(third.approvalId));
    const decisions = [
      { id: first.approvalId, decision: "approve" },
      { id: APPROVAL_OF_NOBODY, decision: "approve" },
      { id: second.approvalId, decision: "deny", feedback: "too dear" },
      { id: third.approvalId, decision: "approve" },
    ];
    const { token } = world;
    const { results } = await world.api.ok("decideApprovals", 200, { token, body: { decisions } });
    expect(results.map(({ id }) => id)).to.deep.equal(decisions.map(({ id }) => id));
    expect(
      results.map(({ approval, error }) => [approval?.resolution, approval?.feedback, error?.error]),
    ).to.deep.equal([
      ["approved", null, undefined],
      [undefined, undefined, "NOT_FOUND"],
      ["denied", "too dear", undefined],
      [undefined, undefined, "APPROVAL_ALREADY_RESOLVED"],
    ]);
    expect((await payment(agent, first.transactionId)).transaction.status).to.equal("approved");
    const books = await expectBooksAgree(world, agent);
    expect([books.spentCents, books.reservedCents]).to.deep.equal([100, 0]);
  });

  it("many with a denial without feedback, none, or one twice: 400, and none is decided", async () => {
    const agent = await asksAlways();
    const [{ approvalId: id }, { approvalId: other }] = [await agent.hold(), await agent.hold()];
    const bodies = [
      [
        { id, decision: "approve" },
        { id: other, decision: "deny" },
      ],
      [
        { id, decision: "approve" },
        { id, decision: "approve" },
      ],
      [],
      times(201, (index) => ({ id: `apr_${String(index).padStart(26, "0")}`, decision: "approve" })),
    ];
    for (const decisions of bodies) {
      const request = { token: world.token, body: { decisions } };
      await world.api.refused("decideApprovals", 400, "VALIDATION_FAILED", request);
    }
    const query = { agent_id: agent.id };
    const pending = await world.api.ok("listPendingApprovals", 200, { token: world.token, query });
    expect(pending.approvals).to.have.lengthOf(2);
  });

  it("what is resolved stays so: approve, deny and cancel answer 409 afterwards", async () => {
    const agent = await asksAlways();
    const { approvalId, transactionId } = await agent.hold();
    await world.api.ok("denyApproval", 200, deny(approvalId));
    await world.api.refused("approveApproval", 409, "APPROVAL_ALREADY_RESOLVED", approve(approvalId));
    await world.api.refused("denyApproval", 409, "APPROVAL_ALREADY_RESOLVED", deny(approvalId));
    const cancel = { token: agent.key, id: transactionId };
    await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", cancel);
  });

  it("the agent cancels a hold: denied without a resolver, released, never approved after", async () => {
    const agent = await asksAlways();
    const { approvalId, transactionId } = await agent.hold();
    const cancel = { token: agent.key, id: transactionId };
    const { approval, transaction } = await world.api.ok("cancelPayment", 200, cancel);
    expect([transaction.status, transaction.denialCode]).to.deep.equal(["denied", "CANCELLED_BY_AGENT"]);
    expect(approval).to.deep.include({ resolution: "denied", resolvedBy: null, feedback: null });
    await world.api.refused("approveApproval", 409, "APPROVAL_ALREADY_RESOLVED", approve(approvalId));
    await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", cancel);
    const { transaction: paid } = await (await world.agent()).pay();
    await world.api.refused("cancelPayment", 404, "NOT_FOUND", { token: agent.key, id: paid.id });
    expect((await expectBooksAgree(world, agent)).reservedCents).to.equal(0);
  });

  it("a settled payment cannot be cancelled", async () => {
    const agent = await world.agent();
    const { transaction } = await agent.pay();
    const cancel = { token: agent.key, id: transaction.id };
    await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", cancel);
  });

  it("an approval of another organization, and an unknown one, are 404, and it stays pending", async () => {
    const other = await newWorld();
    const agent = await asksAlways();
    const { approvalId } = await agent.hold();
    for (const id of [approvalId, APPROVAL_OF_NOBODY]) {
      await other.api.refused("approveApproval", 404, "NOT_FOUND", { token: other.token, id });
      await other.api.refused("denyApproval", 404, "NOT_FOUND", { ...deny(id), token: other.token });
    }
    const query = { agent_id: agent.id };
    expect((await world.api.ok("listPendingApprovals", 200, { token: world.token, query })).approvals)
      .to.have //
      .lengthOf(1);
  });

  it("one moved to another team in MongoDB evades no restriction of its agent's own team", async () => {
    const { token } = world;
    const [own, lax] = await Promise.all(
      ["Own", "Lax"].map(async (name) => {
        const { team } = await world.api.ok("createTeam", 201, { token, body: { name } });
        return team.id;
      }),
    );
    const agent = await asksAlways({ teamId: own });
    const { approvalId, transactionId } = await agent.hold();
    const restrict = (id = "", ...restricted: Parameters<typeof restricting>) =>
      world.api.ok("setTeamRestrictions", 200, { token, id, body: restricting(...restricted) });
    await elevate(world);
    await restrict(own, { rails: { only: ["wallet"] } });
    for (const version of [1, 2]) await restrict(lax, {}, version);
    const approvals = world.service.db.collection<ApprovalDocument>(COLLECTIONS.approvals);
    await approvals.updateOne({ _id: approvalId }, { $set: { teamId: lax ?? "" } });
    const { approval } = await world.api.ok("approveApproval", 200, approve(approvalId));
    expect(approval.resolution).to.equal("failed");
    expect((await payment(agent, transactionId)).transaction.denialCode).to.equal("RAIL_NOT_ALLOWED");
  });

  it("several approvals of one held payment at once have one effect", async () => {
    const agent = await asksAlways();
    const { approvalId } = await agent.hold();
    const answers = await atOnce(shortOrSoak(5, 10), () =>
      world.api.call("approveApproval", approve(approvalId)),
    );
    expectDoneOnce(answers, "APPROVAL_ALREADY_RESOLVED", 200);
    const books = await expectBooksAgree(world, agent);
    expect([books.entries, books.ledgerCents]).to.deep.equal([1, 100]);
  });

  it("of approve, deny and cancel at once exactly one wins, and the books agree with it", async () => {
    const agent = await asksAlways();
    for (const _round of times(shortOrSoak(2, 6), (round) => round)) {
      const { approvalId, transactionId } = await agent.hold();
      const calls = [
        () => world.api.call("approveApproval", approve(approvalId)),
        () => world.api.call("denyApproval", deny(approvalId)),
        () => world.api.call("cancelPayment", { token: agent.key, id: transactionId }),
      ];
      const answers = await Promise.all(calls.map(onceReachable));
      const winner = answers.findIndex(({ status }) => status === 200);
      const { 200: won = 0, ...others } = tally(answers.map(({ status }) => status));
      expect(others).to.deep.equal({ "409": 3 - won });
      expectOnce(won);
      const { status, denialCode } = (await payment(agent, transactionId)).transaction;
      const ends = ["approved null", "denied APPROVAL_DENIED", "denied CANCELLED_BY_AGENT"];
      expect(`${status} ${String(denialCode)}`).to.be.oneOf(won === 1 ? [ends[winner]] : ends);
    }
    const books = await expectBooksAgree(world, agent);
    expect(books.reservedCents).to.equal(0);
  });

  it("holding reserves: of payments at once that are held, a budget for half denies half", async () => {
    const agent = await asksAlways({ budgetCents: 300 });
    const paid = await Promise.all(times(6, () => agent.pay()));
    expect(tally(paid.map(({ transaction }) => transaction.denialCode ?? transaction.status))).to.deep.equal({
      pending: 3,
      BUDGET_EXCEEDED: 3,
    });
    const held = paid.flatMap(({ approval, transaction }) =>
      approval === null ? [] : [{ approvalId: approval.id, transactionId: transaction.id }],
    );
    await Promise.all(
      held.map(({ approvalId }) => world.api.ok("approveApproval", 200, approve(approvalId))),
    );
    // On a busy machine an answer may come before its payment is made.
    const ended = await Promise.all(
      held.map(({ transactionId }) => finalPayment(world, agent, transactionId)),
    );
    expect(ended.map(({ approval }) => approval?.resolution)).to.deep.equal(times(3, () => "approved"));
    const books = await expectBooksAgree(world, agent);
    expect([books.spentCents, books.ledgerCents]).to.deep.equal([300, 300]);
  });

  it("approving while the agent is paused is 200, the payment fails AGENT_PAUSED, no charge", async () => {
    const agent = await asksAlways();
    const { approvalId, transactionId } = await agent.hold();
    await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
    const { approval } = await world.api.ok("approveApproval", 200, approve(approvalId));
    expect(approval.resolution).to.equal("failed");
    await world.api.ok("resumeAgent", 200, { token: world.token, id: agent.id });
    const { transaction } = await payment(agent, transactionId);
    expect([transaction.status, transaction.denialCode]).to.deep.equal(["failed", "AGENT_PAUSED"]);
    expect(await expectBooksAgree(world, agent)).to.deep.include({ entries: 0, reservedCents: 0 });
  });

  it("a card that is declined after the approval: 200 with resolution failed and CARD_DECLINED", async () => {
    const agent = await asksAlways();
    const { approvalId, transactionId } = await agent.hold({ merchant: "sandbox-decline" });
    const { approval } = await world.api.ok("approveApproval", 200, approve(approvalId));
    expect(approval.resolution).to.equal("failed");
    expect((await payment(agent, transactionId)).transaction.denialCode).to.equal("CARD_DECLINED");
    expect(await expectBooksAgree(world, agent)).to.deep.include({ entries: 0, reservedCents: 0 });
  });
});
