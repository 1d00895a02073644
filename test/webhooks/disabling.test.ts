import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { COLLECTIONS, type EventDocument } from "../../src/store/documents.ts";
import { DeliveryOutcomes } from "../../src/webhooks/delivery/outcomes.ts";
import {
  type AttemptRecord,
  type DeliveryDocument,
  type EndpointDocument,
  type WebhookCollections,
  webhookCollections,
} from "../../src/store/webhook-documents.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { times, until, type World } from "../support/world.ts";
import { endpointDocument } from "./documents.ts";
import { deliveriesOf, endedDeliveries, endpointAt, openScene, type Scene, worldIn } from "./support.ts";

const attempt = (failureReason: string | null): AttemptRecord => ({
  number: 1,
  at: new Date(),
  httpStatus: failureReason === null ? 200 : 500,
  responseTimeMs: 1,
  failureReason,
  responseExcerpt: null,
});

describe("endpoints that fail are disabled", () => {
  let service: TestService;
  let webhooks: WebhookCollections;
  let outcomes: DeliveryOutcomes;
  before(async () => {
    service = await startTestService();
    webhooks = webhookCollections(service.db);
    const { mongo: client } = service.connections;
    outcomes = new DeliveryOutcomes({ client, webhooks, clock: () => new Date() });
  });
  after(() => service.stop());

  async function endpoint(): Promise<EndpointDocument> {
    const made = { ...endpointDocument("org"), _id: `whe_${randomUUID()}` };
    await webhooks.endpoints.insertOne(made);
    return made;
  }

  async function deliveries(
    of: EndpointDocument,
    count: number,
    isTest = false,
  ): Promise<DeliveryDocument[]> {
    const now = new Date();
    const made = times(count, (): DeliveryDocument => ({
      _id: `dlv_${randomUUID()}`,
      organizationId: of.organizationId,
      endpointId: of._id,
      eventId: randomUUID(),
      eventType: "agent.paused",
      isTest,
      body: "{}",
      status: "pending",
      attempts: [],
      attemptCount: 0,
      run: 1,
      runAttempts: 0,
      nextAttemptAt: null,
      createdAt: now,
      expiresAt: new Date(now.getTime() + 1e9),
    }));
    await webhooks.deliveries.insertMany(made);
    return made;
  }

  const read = async ({ _id }: EndpointDocument): Promise<EndpointDocument> => {
    const found = await webhooks.endpoints.findOne({ _id });
    if (found === null) throw new Error("the endpoint is gone");
    return found;
  };
  const fail = (all: readonly DeliveryDocument[]) =>
    Promise.all(all.map((delivery) => outcomes.failed(delivery, attempt("it answered 500"))));

  for (const [count, isActive] of [
    [9, true],
    [10, false],
    [11, false],
  ] as const) {
    it(`${count} deliveries in a row that fail at the same time: ${isActive ? "active" : "disabled"}`, async () => {
      const of = await endpoint();
      await fail(await deliveries(of, count));
      const after = await read(of);
      expect([after.isActive, after.consecutiveFailures]).to.deep.equal([isActive, Math.min(count, 10)]);
    });
  }

  it("each delivery counts once, however often and by however many its end is written down", async () => {
    const of = await endpoint();
    const nine = await deliveries(of, 9);
    const written = await fail([...nine, ...nine, ...nine]);
    expect(written.filter(Boolean)).to.have.lengthOf(9);
    expect((await read(of)).consecutiveFailures).to.equal(9);
  });

  it("one that is acknowledged starts the count anew; tests never count", async () => {
    const of = await endpoint();
    await fail(await deliveries(of, 9));
    await fail(await deliveries(of, 5, true));
    const [taken] = await deliveries(of, 1);
    if (taken === undefined) throw new Error("unreachable");
    await outcomes.succeeded(taken, attempt(null));
    expect((await read(of)).consecutiveFailures).to.equal(0);
    await fail(await deliveries(of, 9));
    expect((await read(of)).isActive).to.equal(true);
  });

  it("what is queued is dropped in the same moment, tests are not", async () => {
    const of = await endpoint();
    const [queued] = await deliveries(of, 1);
    const [test] = await deliveries(of, 1, true);
    await fail(await deliveries(of, 10));
    const found = await webhooks.deliveries.findOne({ _id: queued?._id ?? "" });
    expect(found).to.include({ status: "dropped", pendingAction: "drop" });
    expect(await webhooks.deliveries.findOne({ _id: test?._id ?? "" })).to.include({ status: "pending" });
  });

  it("one that was dropped while its last answer was on the way is what the answer says", async () => {
    const of = await endpoint();
    const [late] = await deliveries(of, 1);
    if (late === undefined) throw new Error("unreachable");
    await fail(await deliveries(of, 10));
    await outcomes.succeeded(late, attempt(null));
    expect(await webhooks.deliveries.findOne({ _id: late._id })).to.include({ status: "succeeded" });
    expect((await read(of)).isActive, "it stays disabled").to.equal(false);
  });
});

describe("an endpoint that is disabled by its failures", () => {
  let scene: Scene;
  let world: World;
  before(async () => {
    scene = await openScene((_request, response) => void response.writeHead(500).end(), {
      WEBHOOK_BACKOFF_SECONDS: "",
    });
    world = await worldIn(scene);
  });
  after(() => scene.close());

  it("says so to its owner, in the audit log and on itself, and begins anew once it is enabled", async () => {
    const { token } = world;
    const { id } = await endpointAt(world, scene.receiver, "/failing", { eventTypes: ["agent.paused"] });
    for (const agent of await Promise.all(times(12, () => world.agent())))
      await world.api.ok("pauseAgent", 200, { token, id: agent.id });
    const endpoint = await until("it is disabled", async () => {
      const read = await world.api.ok("getWebhook", 200, { token, id });
      return read.endpoint.isActive ? null : read.endpoint;
    });
    expect(endpoint).to.include({ consecutiveFailures: 10, disabledReason: "consecutive_failures" });
    const entry = await until("it is in the audit log", async () => {
      const { entries } = await world.api.ok("listAuditLog", 200, {
        token,
        query: { action: "disableWebhook" },
      });
      return entries[0] ?? null;
    });
    expect(entry).to.deep.include({
      actor: { type: "system", id: "webhooks" },
      resource: { type: "webhook_endpoint", id },
    });
    // What is told of only once it is enabled again would count there, too.
    await until("all twelve are told of", async () => {
      const events = scene.service.db.collection<EventDocument>(COLLECTIONS.events);
      return (await events.countDocuments({ type: "agent.paused", isPending: true })) === 0 ? true : null;
    });
    const ended = await endedDeliveries(world, id, 10);
    expect(ended.filter(({ status }) => status === "failed")).to.have.lengthOf(10);
    const enabled = await world.api.ok("updateWebhook", 200, { token, id, body: { isActive: true } });
    expect(enabled.endpoint).to.include({ isActive: true, consecutiveFailures: 0, disabledReason: null });
    const agent = await world.agent();
    await world.api.ok("pauseAgent", 200, { token, id: agent.id });
    await until("one more has failed", async () => {
      const failed = (await deliveriesOf(world, id)).filter(({ status }) => status === "failed");
      return failed.length === 11 ? true : null;
    });
    const { endpoint: again } = await world.api.ok("getWebhook", 200, { token, id });
    expect(again).to.include({ isActive: true, consecutiveFailures: 1 });
    const { entries } = await world.api.ok("listAuditLog", 200, {
      token,
      query: { action: "disableWebhook" },
    });
    expect(entries).to.have.lengthOf(1);
  });
});
