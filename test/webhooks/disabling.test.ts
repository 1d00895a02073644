import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { DeliveryOutcomes } from "../../src/webhooks/delivery/outcomes.ts";
import {
  type AttemptRecord,
  type DeliveryDocument,
  type EndpointDocument,
  type WebhookCollections,
  webhookCollections,
} from "../../src/store/webhook-documents.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { eraseSecret } from "../../src/webhooks/delivery/secrets.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times } from "../support/world.ts";
import { endpointDocument } from "./documents.ts";

const attempt = (failureReason: string | null): AttemptRecord => ({
  number: 1,
  at: new Date(),
  httpStatus: failureReason === null ? 200 : 500,
  responseTimeMs: 1,
  failureReason,
  responseExcerpt: null,
});

describe("endpoints that fail are disabled", () => {
  let database: TestDatabase;
  let webhooks: WebhookCollections;
  let outcomes: DeliveryOutcomes;
  before(async () => {
    database = await testDatabase();
    webhooks = webhookCollections(database.db);
    const { client } = database;
    outcomes = new DeliveryOutcomes({
      accessProofs: TEST_ACCESS_PROOFS,
      client,
      webhooks,
      clock: () => new Date(),
    });
  });
  after(() => database.close());

  async function endpoint(): Promise<EndpointDocument> {
    const made = endpointDocument("org", { _id: `whe_${randomUUID()}` });
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
      proof: "",
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

  it("an endpoint that the service has turned off or given another secret is still the service's", async () => {
    const expiresAt = new Date(0);
    const previousSecret = { id: "old", sealed: "", expiresAt };
    const made = endpointDocument("org", { _id: "whe_rotated", previousSecret });
    await webhooks.endpoints.insertOne(made);
    await eraseSecret(webhooks, TEST_ACCESS_PROOFS, {
      endpointId: made._id,
      secretId: "old",
      expiresAt: expiresAt.getTime(),
    });
    await fail(await deliveries(made, 10));
    const kept = await read(made);
    expect(kept).to.deep.include({ isActive: false, previousSecret: null });
    expect(TEST_ACCESS_PROOFS.isGenuine("webhook", kept)).to.equal(true);
  });

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
