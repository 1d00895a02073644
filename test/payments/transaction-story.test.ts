import { expect } from "chai";
import { demote, newEndpoint, newWorld, until, type World } from "../support/world.ts";

describe("a transaction's story", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
  });

  const storyOf = (id: string, token = world.token) =>
    world.api.ok("getTransactionStory", 200, { token, id });

  /** What is told of after the answer. */
  const onceTold = (id: string, events: number) =>
    until(`the story of ${id}`, async () => {
      const story = await storyOf(id);
      return story.events.length >= events && story.decision !== null ? story : null;
    });

  it("has the decision, the approval with its person, rail, events, deliveries and audit entries", async () => {
    const { id: endpointId } = await newEndpoint(world, { eventTypes: ["*"] });
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId, transactionId } = await agent.hold();
    const held = await onceTold(transactionId, 1);
    expect(held.decision).to.deep.equal({
      outcome: "held",
      policyVersion: 1,
      flaggedByRuleTypes: ["agent_threshold"],
    });
    expect(held.railSteps).to.deep.equal([]);
    await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
    const story = await onceTold(transactionId, 3);
    expect(story.transaction.status).to.equal("approved");
    expect(story.approval?.resolution).to.equal("approved");
    expect(story.approval?.resolvedBy?.userId).to.equal(world.organization.userId);
    expect(story.events.map(({ type }) => type)).to.deep.equal([
      "approval.requested",
      "approval.completed",
      "transaction.completed",
    ]);
    expect(story.railSteps.map(({ amountCents, kind }) => [kind, amountCents])).to.deep.equal([
      ["captured", 100],
    ]);
    const whole = await until("its deliveries and entries", async () => {
      const { auditEntries, webhookDeliveries } = await storyOf(transactionId);
      const actions = auditEntries?.map(({ action }) => action) ?? [];
      const isWhole = actions.includes("resolvePayment") && webhookDeliveries?.length === 3;
      return isWhole ? { actions, webhookDeliveries } : null;
    });
    expect(whole.actions).to.include.members(["decidePayment", "resolvePayment"]);
    expect(new Set(whole.webhookDeliveries.map((each) => each.endpointId))).to.deep.equal(
      new Set([endpointId]),
    );
    expect(whole.webhookDeliveries.map(({ delivery }) => delivery.eventType).toSorted()).to.deep.equal(
      story.events.map(({ type }) => type).toSorted(),
    );
  });

  it("a reversal is a step of its own on the rail", async () => {
    const { transaction } = await (await world.agent()).pay({ merchant: "sandbox-reverse" });
    const story = await until("it is given back", async () => {
      const found = await storyOf(transaction.id);
      return found.transaction.status === "reversed" ? found : null;
    });
    expect(story.railSteps.map(({ kind }) => kind)).to.deep.equal(["captured", "reversed"]);
  });

  it("members read everything of it but deliveries and the audit log", async () => {
    await newEndpoint(world, { eventTypes: ["*"] });
    const { transaction } = await (await world.agent()).pay();
    await onceTold(transaction.id, 1);
    await demote(world, "member");
    const story = await storyOf(transaction.id);
    expect([story.webhookDeliveries, story.auditEntries]).to.deep.equal([null, null]);
    expect(story.decision?.outcome).to.equal("approved");
  });
});
