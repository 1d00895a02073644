import { expect } from "chai";
import type { AgentDocument, EventDocument, TransactionDocument } from "../../src/store/documents.ts";
import {
  archive,
  deliveries,
  expectEvents,
  eventsOf,
  made,
  mintKey,
  orchestrator,
  readAgent,
  revokeKey,
} from "../support/life.ts";
import { cardPayment, newWorld, type TestAgent, times, type World } from "../support/world.ts";

describe("the journal of events", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const owner = ({ id }: { readonly id: string }) => ({ token: world.token, id });
  const pause = (agent: TestAgent) => world.api.ok("pauseAgent", 200, owner(agent));
  const resume = (agent: TestAgent) => world.api.ok("resumeAgent", 200, owner(agent));

  async function theEvent(
    agent: { readonly id: string },
    type: EventDocument["type"],
  ): Promise<EventDocument> {
    const found = (await eventsOf(world, agent)).filter((event) => event.type === type);
    const [event] = found;
    if (event === undefined || found.length > 1) throw new Error(`${found.length} of ${type}`);
    return event;
  }

  it("agent.created: once, with the record, where it belongs; its replays tell nothing more", async () => {
    const by = await orchestrator(world);
    const agent = await made(world, by, { name: "Told", description: "of" });
    await Promise.all(
      times(5, () => world.api.ok("createAgent", 200, { token: by.token, body: agent.body })),
    );
    await expectEvents(world, agent, { "agent.created": 1 });
    const event = await theEvent(agent, "agent.created");
    const { organizationId, projectId, teamId } = world.organization;
    const place = { organizationId, projectId, teamId, agentId: agent.id, agentName: "Told" };
    expect(event).to.deep.include({ ...place, _id: `evt_${agent.id}_created` });
    expect(event.data.agent).to.deep.include({ _id: agent.id, name: "Told", lifecycle: "active" });
  });

  it("agent.archived: once, the last by its time, with the record as it is then, without a key", async () => {
    const agent = await world.agent();
    await pause(agent);
    await resume(agent);
    const { agent: record } = await archive(world, agent);
    await archive(world, agent);
    const types = ["agent.created", "agent.paused", "agent.resumed", "agent.archived"] as const;
    await expectEvents(world, agent, Object.fromEntries(types.map((type) => [type, 1])));
    const { createdAt, data } = await theEvent(agent, "agent.archived");
    expect(data.agent).to.deep.include({ _id: agent.id, lifecycle: "archived", key: null });
    expect(createdAt.toISOString()).to.equal(record.archivedAt);
    const told = await Promise.all(types.map((type) => theEvent(agent, type)));
    const at = told.map((event) => event.createdAt.getTime());
    expect(at).to.deep.equal(at.toSorted((one, other) => one - other));
  });

  it("of payments: completed and denied by policy, once each; declines and cancellations none", async () => {
    const agent = await world.agent({ budgetCents: 1_000 });
    const body = cardPayment();
    const { transaction } = await world.api.ok("createPayment", 201, { token: agent.key, body });
    await Promise.all(times(3, () => world.api.ok("createPayment", 200, { token: agent.key, body })));
    const denied = await agent.pay({ amountCents: 100_000 });
    await agent.pay({ merchant: "sandbox-decline" });
    await expectEvents(world, agent, {
      "agent.created": 1,
      "transaction.completed": 1,
      "transaction.denied": 1,
    });
    const completed = await theEvent(agent, "transaction.completed");
    expect(completed._id).to.equal(`evt_${transaction.id}_transaction.completed`);
    expect(completed.data.transaction).to.deep.include({ _id: transaction.id, status: "approved" });
    const refused = await theEvent(agent, "transaction.denied");
    const told = { _id: denied.transaction.id, denialCode: "BUDGET_EXCEEDED", status: "denied" };
    expect(refused.data.transaction).to.deep.include(told);
  });

  it("of approvals: requested as held, completed as decided, and what came of it; each once", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const [yes, no, gone] = [await agent.hold(), await agent.hold(), await agent.hold()];
    const token = world.token;
    const decide = (operation: "approveApproval" | "denyApproval", id: string, body?: object) =>
      world.api.call(operation, { token, id, ...(body === undefined ? {} : { body }) });
    await Promise.all(times(2, () => decide("approveApproval", yes.approvalId)));
    await Promise.all(times(2, () => decide("denyApproval", no.approvalId, { feedback: "too much" })));
    await world.api.ok("cancelPayment", 200, { token: agent.key, id: gone.transactionId });
    await expectEvents(world, agent, {
      "agent.created": 1,
      "approval.requested": 3,
      "approval.completed": 2,
      "approval.cancelled": 1,
      "transaction.completed": 1,
      "transaction.denied": 1,
    });
    const events = await eventsOf(world, agent);
    const of = (id: string, type: string) => events.find((event) => event._id === `evt_${id}_${type}`);
    const requested = of(no.transactionId, "approval.requested")?.data;
    expect(requested?.approval).to.deep.include({ state: "pending", resolution: null, feedback: null });
    expect(requested?.transaction).to.deep.include({ status: "pending", denialCode: null });
    const completed = of(no.transactionId, "approval.completed")?.data;
    expect(completed?.approval).to.deep.include({ resolution: "denied", feedback: "too much" });
    expect(completed?.approval?.["resolvedBy"]).to.have.property("userId", world.organization.userId);
  });

  it("names are those of the time: an event that was told is never told anew", async () => {
    const agent = await world.agent({ name: "First" });
    await agent.pay();
    await expectEvents(world, agent, { "agent.created": 1, "transaction.completed": 1 });
    await world.api.ok("updateAgent", 200, { ...owner(agent), body: { name: "Second" } });
    await pause(agent);
    await expectEvents(world, agent, {
      "agent.created": 1,
      "agent.paused": 1,
      "transaction.completed": 1,
    });
    const names = (await eventsOf(world, agent)).map(({ agentName, type }) => [type, agentName]);
    expect(names).to.have.deep.members([
      ["agent.created", "First"],
      ["transaction.completed", "First"],
      ["agent.paused", "Second"],
    ]);
  });

  it("no event has a key, a key's hash, a sealed value or an idempotency key, hashed or not", async () => {
    const by = await orchestrator(world);
    const agent = await made(world, by);
    const key = agent.key ?? "";
    const payment = cardPayment();
    await world.api.ok("createPayment", 201, { token: key, body: payment });
    await revokeKey(world, agent);
    const { apiKey } = await mintKey(world, agent);
    await world.api.ok("pauseAgent", 200, owner(agent));
    const { db } = world.service;
    const record = await db.collection<AgentDocument>("agents").findOne({ _id: agent.id });
    const paid = await db.collection<TransactionDocument>("transactions").findOne({ agentId: agent.id });
    const delivery = await deliveries(world).findOne({ _id: agent.id });
    const hashes = [record?.key?.hash ?? "", paid?.keyHash ?? "", paid?.payloadHash ?? ""];
    for (const hash of hashes) expect(hash).to.have.lengthOf.above(20);
    await archive(world, agent);
    await expectEvents(world, agent, {
      "agent.created": 1,
      "agent.paused": 1,
      "agent.archived": 1,
      "transaction.completed": 1,
    });
    const text = JSON.stringify(await eventsOf(world, agent));
    const sealed = delivery?.sealed ?? "";
    expect(sealed).to.have.lengthOf.above(20);
    const secrets = [key, apiKey, sealed, agent.body.idempotencyKey, payment["idempotencyKey"], ...hashes];
    for (const secret of secrets) expect(text).not.to.include(String(secret));
    expect(text).not.to.match(/sk_svc_live_|svc_org_live_|candidateKeys|keyHash|payloadHash/);
    expect((await readAgent(world, agent)).state).to.equal("archived");
  });
});
