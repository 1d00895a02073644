import { expect } from "chai";
import { elevate, until, type World } from "../support/world.ts";
import {
  arrivals,
  deliveredTo,
  endedDeliveries,
  endpointAt,
  openScene,
  type Scene,
  worldIn,
} from "./support.ts";

const sorted = (rows: readonly (readonly unknown[])[]) => rows.map(String).toSorted();

describe("webhook events", () => {
  let scene: Scene;
  let world: World;
  before(async () => {
    scene = await openScene();
  });
  after(() => scene.close());
  beforeEach(async () => {
    world = await worldIn(scene);
  });

  const dispatched = () =>
    until("nothing is pending", async () => {
      const pending = await scene.service.db.collection("events").countDocuments({ isPending: true });
      return pending === 0 ? true : null;
    });

  const path = () => `/${world.organization.organizationId}`;

  it("each change of an agent's life is delivered once, in order, signed, with its record", async () => {
    const endpoint = await endpointAt(world, scene.receiver, path());
    const { token } = world;
    const agent = await world.agent({ name: "Shopper" });
    const asked = { token, id: agent.id };
    await world.api.ok("pauseAgent", 200, asked);
    await world.api.ok("pauseAgent", 200, asked);
    await world.api.ok("resumeAgent", 200, asked);
    await elevate(world);
    await world.api.ok("archiveAgent", 200, asked);
    const events = await arrivals(scene, path(), endpoint.secret, 4);
    await endedDeliveries(world, endpoint.id, 4);
    const byType = new Map(
      deliveredTo(scene.receiver, path(), endpoint.secret).map((event) => [event.type, event]),
    );
    expect([...byType.keys()].toSorted()).to.deep.equal([
      "agent.archived",
      "agent.created",
      "agent.paused",
      "agent.resumed",
    ]);
    expect(deliveredTo(scene.receiver, path(), endpoint.secret)).to.have.lengthOf(4);
    const { organizationId, projectId, teamId } = world.organization;
    for (const event of events) {
      expect(event).to.include({ org_id: organizationId, project_id: projectId, team_id: teamId });
      expect(event).to.include({ agent_id: agent.id, agent_name: "Shopper" });
      expect(JSON.stringify(event)).not.to.match(/hash|sealed|pepper/i);
    }
    const stateIn = (type: "agent.created" | "agent.paused" | "agent.resumed" | "agent.archived") =>
      byType.get(type)?.data["agent"];
    expect(stateIn("agent.created")).to.include({ id: agent.id, state: "active" });
    expect(stateIn("agent.paused")).to.include({ state: "paused" });
    expect(stateIn("agent.resumed")).to.include({ state: "active" });
    expect(stateIn("agent.archived")).to.include({ state: "archived", key: null });
  });

  it("payments: completed, denied by policy, held, approved and denied; nothing for other ends", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 1_000, budgetCents: 100_000 });
    const endpoint = await endpointAt(world, scene.receiver, path(), {
      eventTypes: ["transaction.completed", "transaction.denied", "approval.requested", "approval.completed"],
    });
    const { token } = world;
    const paid = await agent.pay({ amountCents: 500 });
    const refused = await agent.pay({ amountCents: 200_000 });
    const approved = await agent.hold({ amountCents: 2_000 });
    await world.api.ok("approveApproval", 200, { token, id: approved.approvalId });
    const denied = await agent.hold({ amountCents: 3_000 });
    await world.api.ok("denyApproval", 200, { token, id: denied.approvalId, body: { feedback: "Too dear" } });
    const cancelled = await agent.hold({ amountCents: 4_000 });
    await world.api.ok("cancelPayment", 200, { token: agent.key, id: cancelled.transactionId });
    const expected = [
      ["transaction.completed", paid.transaction.id],
      ["transaction.denied", refused.transaction.id],
      ["approval.requested", approved.transactionId],
      ["approval.completed", approved.transactionId],
      ["transaction.completed", approved.transactionId],
      ["approval.requested", denied.transactionId],
      ["approval.completed", denied.transactionId],
      ["transaction.denied", denied.transactionId],
      ["approval.requested", cancelled.transactionId],
    ];
    await arrivals(scene, path(), endpoint.secret, expected.length);
    // Whatever else would have fired is told before the next.
    await agent.pay({ amountCents: 600 });
    const all = await arrivals(scene, path(), endpoint.secret, expected.length + 1);
    const seen = all.map(({ data, type }) => {
      const { id } = data["transaction"] as { readonly id: string };
      return [type, id];
    });
    expect(sorted(seen.filter(([, id]) => expected.some(([, known]) => known === id)))).to.deep.equal(
      sorted(expected),
    );
    const completed = all.find(
      ({ data, type }) => type === "approval.completed" && JSON.stringify(data).includes("Too dear"),
    );
    expect(completed?.data["approval"]).to.include({
      id: denied.approvalId,
      resolution: "denied",
      feedback: "Too dear",
    });
    const requested = all.find(({ type }) => type === "approval.requested");
    expect(requested?.data["approval"]).not.to.have.property("resolution");
  });

  it("what concerns the organization alone names no project, team or agent", async () => {
    const endpoint = await endpointAt(world, scene.receiver, path(), {
      eventTypes: ["funding.deposited", "billing.payment_failed"],
    });
    const { token } = world;
    const deposit = await world.api.ok("depositToTreasury", 200, { token, body: { amountCents: 12_345 } });
    const billing = await world.api.ok("failBilling", 201, { token });
    const events = await arrivals(scene, path(), endpoint.secret, 2);
    const deposited = events.find(({ type }) => type === "funding.deposited");
    expect(deposited?.data["deposit"]).to.include({
      amountCents: 12_345,
      onChainTxHash: deposit.onChainTxHash,
    });
    const failed = events.find(({ type }) => type === "billing.payment_failed");
    expect(failed?.data["payment"]).to.include({ id: billing.payment.id });
    for (const event of events)
      expect(event).not.to.have.any.keys("project_id", "team_id", "agent_id", "agent_name");
  });

  it("each endpoint gets what its scope and types match, under ids of its own, nothing else", async () => {
    const { token } = world;
    const { team } = await world.api.ok("createTeam", 201, { token, body: { name: "Other" } });
    const one = await world.agent();
    const other = await world.agent({ teamId: team.id });
    const { projectId } = world.organization;
    // What happened before an endpoint was there may still be delivered to it.
    await dispatched();
    const ways = {
      all: {},
      project: { scopeType: "project", scopeIds: [projectId] },
      team: { scopeType: "team", scopeIds: [team.id] },
      agent: { scopeType: "agent", scopeIds: [one.id] },
      paused: { eventTypes: ["agent.paused"] },
      funding: { eventTypes: ["funding.deposited"] },
    };
    const foreign = await worldIn(scene);
    const theirs = await endpointAt(foreign, scene.receiver, `${path()}/theirs`);
    const endpoints = new Map<string, string>();
    for (const [name, fields] of Object.entries(ways))
      endpoints.set(name, (await endpointAt(world, scene.receiver, `${path()}/${name}`, fields)).secret);
    for (const { id } of [one, other]) {
      await world.api.ok("pauseAgent", 200, { token, id });
      await world.api.ok("resumeAgent", 200, { token, id });
    }
    const counts = { all: 4, project: 4, team: 2, agent: 2, paused: 2, funding: 0 };
    const ids: string[] = [];
    for (const [name, count] of Object.entries(counts)) {
      const events = await arrivals(scene, `${path()}/${name}`, endpoints.get(name) ?? "", count);
      ids.push(...events.map(({ id }) => id));
      if (name === "team") expect(events.every(({ agent_id }) => agent_id === other.id)).to.equal(true);
      if (name === "agent") expect(events.every(({ agent_id }) => agent_id === one.id)).to.equal(true);
    }
    await dispatched();
    for (const [name, count] of Object.entries(counts))
      expect(
        deliveredTo(scene.receiver, `${path()}/${name}`, endpoints.get(name) ?? ""),
        name,
      ).to.have.lengthOf(count);
    expect(deliveredTo(scene.receiver, `${path()}/theirs`, theirs.secret)).to.deep.equal([]);
    expect(new Set(ids).size).to.equal(ids.length);
  });
});
