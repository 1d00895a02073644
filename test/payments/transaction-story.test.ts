import { expect } from "chai";
import { restricting } from "../support/restrictions.ts";
import {
  demote,
  elevate,
  newEndpoint,
  newWorld,
  organizationKey,
  until,
  type World,
} from "../support/world.ts";

const above = (amountCents: number) => ({ type: "amount_above", params: { amountCents } });
const forbidding = (name: string, version = 1) =>
  restricting({ recipients: { only: null, never: [name] } }, version);

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
    const agent = await world.agent({
      autoApprovalThresholdCents: 0,
      hourlyVelocityLimit: 5,
      spendLimits: [{ period: "year", limitCents: 700 }],
    });
    const { approvalId, transactionId } = await agent.hold();
    const held = await onceTold(transactionId, 1);
    expect(held.decision).to.deep.equal({
      outcome: "held",
      policyVersion: 1,
      flaggedByRuleTypes: ["agent_threshold"],
    });
    expect(held.railSteps).to.deep.equal([]);
    const explained = { token: world.token, id: (await agent.hold()).transactionId };
    await onceTold(explained.id, 1);
    const explanation = await world.api.ok("getTransactionExplanation", 200, explained);
    expect(explanation.limits).to.deep.equal([
      { level: "agent", limit: "budget", value: 10_000, used: 100 },
      { level: "agent", limit: "year", value: 700, used: 100 },
      { level: "agent", limit: "hourly_velocity", value: 5, used: 1 },
    ]);
    expect(explanation.versions).to.deep.equal({ policy: 1, project: null, team: null, agent: null });
    expect(explanation.approval?.flaggedByRuleTypes).to.deep.equal(["agent_threshold"]);
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

  /** The story, once its entry of a booking and one delivery are there. */
  async function onceBooked(id: string, types: readonly string[]) {
    const story = await until(`the booking of ${id}`, async () => {
      const found = await storyOf(id);
      const isBooked = found.auditEntries?.some(({ action }) => action === "bookPayment") === true;
      return isBooked && found.webhookDeliveries?.length === 1 ? found : null;
    });
    expect(story.events.map(({ type }) => type)).to.deep.equal(types);
    const booked = story.auditEntries?.filter(({ action }) => action === "bookPayment");
    return { ...story, booked: booked?.map(({ decision }) => decision) };
  }

  it("tells what the network did: steps, events, deliveries, audit entries, each once", async () => {
    await newEndpoint(world, { eventTypes: ["transaction.refunded", "transaction.limit_breached"] });
    const agent = await world.agent();
    await elevate(world);
    const body = { version: 1, perTransactionLimitCents: 1_000 };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id: agent.id, body });
    const over = await agent.pay({ amountCents: 1_000, merchant: "sandbox-over" });
    const { amounts, breach, stage } = over.transaction;
    expect({ amounts, breach, stage }).to.deep.equal({
      amounts: { requestedCents: 1_000, authorizedCents: 1_000, capturedCents: 1_200, creditedCents: 0 },
      breach: [{ level: "agent", limit: "per_transaction", overCents: 200 }],
      stage: "captured",
    });
    const refunded = await agent.pay({ amountCents: 1_000, merchant: "sandbox-partial-refund" });
    const breached = await onceBooked(over.transaction.id, [
      "transaction.completed",
      "transaction.limit_breached",
    ]);
    expect(breached.booked).to.deep.equal([
      {
        agentId: agent.id,
        breach: [{ level: "agent", limit: "per_transaction", overCents: 200 }],
        capturedCents: 1_200,
        creditedCents: 0,
        disputedCents: 0,
        effect: "captured",
        heldCents: 0,
        recalledCents: 0,
        status: "approved",
      },
    ]);
    const back = await onceBooked(refunded.transaction.id, ["transaction.completed", "transaction.refunded"]);
    expect(back.transaction.amounts.creditedCents).to.equal(250);
    expect(back.booked).to.have.lengthOf(1);
    expect(back.railSteps.map(({ amountCents, kind }) => [kind, amountCents])).to.deep.equal([
      ["captured", 1_000],
      ["refunded", 250],
    ]);
  });

  const ALL = 1_000;
  const [COMPLETED, DISPUTED] = ["transaction.completed", "transaction.disputed"] as const;
  const CAME_BACK = ["transaction.refunded", "transaction.reversed"] as const;
  /** What each merchant's network does with 10.00, and what it comes to. */
  const NETWORKS = [
    {
      merchant: "sandbox-several",
      steps: [
        ["captured", 400],
        ["captured", 300],
        ["captured", 200],
        ["released", 0],
      ],
      end: { status: "approved", capturedCents: 900, creditedCents: 0 },
      events: [COMPLETED],
    },
    {
      merchant: "sandbox-late",
      steps: [
        ["authorized", 0],
        ["captured", ALL],
        ["released", 0],
      ],
      end: { status: "approved", capturedCents: ALL, creditedCents: 0 },
      events: [COMPLETED],
    },
    {
      merchant: "sandbox-refund-reversed",
      steps: [
        ["captured", ALL],
        ["refunded", ALL],
        ["refund_reversed", ALL],
      ],
      end: { status: "approved", capturedCents: ALL, creditedCents: 0 },
      events: [COMPLETED, ...CAME_BACK],
    },
    {
      merchant: "sandbox-dispute-won",
      steps: [
        ["captured", ALL],
        ["disputed", ALL],
        ["refunded", ALL],
      ],
      end: { status: "reversed", capturedCents: ALL, creditedCents: ALL },
      events: [COMPLETED, DISPUTED, ...CAME_BACK],
    },
    {
      merchant: "sandbox-dispute-lost",
      steps: [
        ["captured", ALL],
        ["disputed", ALL],
        ["refunded", ALL],
        ["dispute_lost", ALL],
      ],
      end: { status: "approved", capturedCents: ALL, creditedCents: 0 },
      events: [COMPLETED, DISPUTED, ...CAME_BACK],
    },
  ] as const;

  it("every network's captures, refunds and disputes are booked: steps, amounts, status, events", async () => {
    const agent = await world.agent();
    const told = await Promise.all(
      NETWORKS.map(async ({ end, events, merchant, steps }) => {
        const { transaction } = await agent.pay({ amountCents: ALL, merchant });
        const seen = await until(`the end of ${merchant}`, async () => {
          const story = await storyOf(transaction.id);
          const { amounts, status } = story.transaction;
          const isEnd =
            status === end.status &&
            amounts.capturedCents === end.capturedCents &&
            amounts.creditedCents === end.creditedCents;
          const isTold = story.railSteps.length >= steps.length && story.events.length >= events.length;
          return isEnd && isTold ? story : null;
        });
        const { capturedCents, creditedCents } = seen.transaction.amounts;
        return {
          merchant,
          steps: seen.railSteps.map(({ amountCents, kind }) => [kind, amountCents]),
          end: { status: seen.transaction.status, capturedCents, creditedCents },
          events: seen.events.map(({ type }) => type).toSorted(),
        };
      }),
    );
    expect(told).to.deep.equal(NETWORKS.map((each) => ({ ...each, events: [...each.events].toSorted() })));
    await until("what was released is no longer held", async () => {
      const { agent: paid } = await world.api.ok("getAgent", 200, { token: world.token, id: agent.id });
      return paid.reservedCents === 0 && paid.spentCents === 900 + 3 * ALL ? true : null;
    });
  });

  it("explains a payment by the rules and restrictions of its time, whatever replaced them since", async () => {
    const { token } = world;
    const { projectId, teamId } = world.organization;
    const agent = await world.agent();
    await elevate(world);
    const rules = [above(50), above(5_000), { type: "velocity", params: { count: 9, windowSeconds: 60 } }];
    const level = { token, id: projectId };
    await world.api.ok("setProjectApprovalRules", 200, { ...level, body: { rules, version: 1 } });
    await world.api.ok("setTeamRestrictions", 200, { token, id: teamId, body: forbidding("Evil") });
    const held = await agent.hold();
    const denied = (await agent.pay({ merchant: "EVIL" })).transaction.id;
    await world.api.ok("setTeamRestrictions", 200, { token, id: teamId, body: forbidding("Other", 2) });
    await world.api.ok("setProjectRestrictions", 200, { ...level, body: forbidding("Other") });
    await world.api.ok("setProjectApprovalRules", 200, { ...level, body: { rules: [], version: 2 } });
    const explained = async (id: string, as = token) => {
      await onceTold(id, 1);
      return world.api.ok("getTransactionExplanation", 200, { token: as, id });
    };
    const ofHeld = await explained(held.transactionId);
    const flags = ofHeld.rules?.map(({ flagged, level: of, rule: { params, type } }) => [
      of,
      type,
      params,
      flagged,
    ]);
    expect(flags).to.deep.equal([
      ["project", "amount_above", { amountCents: 50 }, true],
      ["project", "amount_above", { amountCents: 5_000 }, false],
      ["project", "velocity", { count: 9, windowSeconds: 60 }, false],
    ]);
    const evil = { level: "team", restrictions: forbidding("Evil", 2) };
    expect(ofHeld.restrictions).to.deep.equal([{ ...evil, forbidden: null }]);
    const ofDenied = await explained(denied);
    expect(ofDenied.rules?.map(({ flagged }) => flagged)).to.deep.equal([null, null, null]);
    expect(ofDenied.restrictions).to.deep.equal([{ ...evil, forbidden: "RECIPIENT_NOT_ALLOWED" }]);
    const key = await organizationKey(world, { scopes: ["agents:read"] });
    const { restrictions, rules: read } = await explained(denied, key.token);
    expect([read, restrictions]).to.deep.equal([null, null]);
  });

  it("members read all of it but deliveries and the audit log, auditors all but deliveries", async () => {
    await newEndpoint(world, { eventTypes: ["*"] });
    const { transaction } = await (await world.agent()).pay();
    await onceTold(transaction.id, 1);
    await demote(world, "member");
    const story = await storyOf(transaction.id);
    expect([story.webhookDeliveries, story.auditEntries]).to.deep.equal([null, null]);
    expect(story.decision?.outcome).to.equal("approved");
    await demote(world, "auditor");
    const audited = await storyOf(transaction.id);
    expect(audited.webhookDeliveries).to.equal(null);
    expect(audited.auditEntries?.length).to.be.greaterThan(0);
  });
});
