import { expect } from "chai";
import { DeliveryAttempts } from "../../src/webhooks/delivery/attempt.ts";
import {
  type DeliveryDocument,
  type EndpointDocument,
  webhookCollections,
} from "../../src/store/webhook-documents.ts";
import { inputOf, newDelivery } from "../../src/webhooks/delivery/new-delivery.ts";
import { DeliveryOutcomes } from "../../src/webhooks/delivery/outcomes.ts";
import { DeliverySlots } from "../../src/webhooks/delivery/slots.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { endpointDocument, eventDocument, NOW } from "./documents.ts";

const accessProofs = TEST_ACCESS_PROOFS;
const EXCHANGE_MS = 15_000;
const atNow = () => new Date(NOW);

describe("attempts of a delivery", () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase();
  });
  afterEach(() => database.close());

  it("the schedule counts from the beginning of each attempt, however long a receiver takes", async () => {
    const webhooks = webhookCollections(database.db);
    const endpoint = endpointDocument("org");
    const event = eventDocument("org", 0);
    const delivery = newDelivery({
      accessProofs,
      event,
      data: {},
      endpoint,
      now: new Date(NOW),
      retentionDays: 1,
    });
    await webhooks.endpoints.insertOne(endpoint);
    await webhooks.deliveries.insertOne(delivery);
    let now = NOW;
    const clock = () => new Date(now);
    const attempts = new DeliveryAttempts({
      accessProofs,
      webhooks,
      outcomes: new DeliveryOutcomes({ accessProofs, client: database.client, webhooks, clock }),
      sender: {
        send: () => {
          now += EXCHANGE_MS;
          return Promise.resolve({ kind: "failed", reason: "it took too long", elapsedMs: EXCHANGE_MS });
        },
      },
      secrets: { open: () => `whsec_${"A".repeat(44)}` },
      slots: new DeliverySlots(),
      onEndpointDisabled: () => Promise.reject(new Error("nothing is disabled")),
      clock,
      onAttempt: () => undefined,
    });
    const begins: number[] = [];
    for (const pauseMs of [300_000, 1_800_000, 7_200_000, 28_800_000]) {
      begins.push(now - NOW);
      const attempted = await attempts.next(inputOf(delivery));
      expect(attempted).to.deep.include({ kind: "again", afterMs: pauseMs - EXCHANGE_MS });
      const kept = await webhooks.deliveries.findOne({ _id: delivery._id });
      now += pauseMs - EXCHANGE_MS;
      expect(kept?.nextAttemptAt?.getTime()).to.equal(now);
    }
    begins.push(now - NOW);
    expect(begins.map((ms) => ms / 1_000)).to.deep.equal([0, 300, 2_100, 9_300, 38_100]);
    expect(await attempts.next(inputOf(delivery))).to.deep.equal({ kind: "ended", end: "failed" });
  });

  it("an event goes to no endpoint but its own, whichever two a workflow names", async () => {
    const webhooks = webhookCollections(database.db);
    const [own, foreign] = [endpointDocument("org"), endpointDocument("other")];
    const event = eventDocument("org", 0);
    const delivery = newDelivery({
      accessProofs,
      event,
      data: {},
      endpoint: own,
      now: new Date(NOW),
      retentionDays: 1,
    });
    await webhooks.endpoints.insertMany([own, foreign]);
    await webhooks.deliveries.insertOne(delivery);
    const sent: string[] = [];
    const attempts = new DeliveryAttempts({
      accessProofs,
      webhooks,
      outcomes: new DeliveryOutcomes({ accessProofs, client: database.client, webhooks, clock: atNow }),
      sender: {
        send: ({ url }) => {
          sent.push(url);
          return Promise.resolve({ kind: "failed", reason: "nobody listens", elapsedMs: 1 });
        },
      },
      secrets: { open: () => `whsec_${"A".repeat(44)}` },
      slots: new DeliverySlots(),
      onEndpointDisabled: () => Promise.reject(new Error("nothing is disabled")),
      clock: atNow,
      onAttempt: () => undefined,
    });
    const input = inputOf(delivery);
    const named = [
      { endpointId: foreign._id },
      { organizationId: "other" },
      { endpointId: foreign._id, organizationId: "other" },
      { endpointId: "none" },
    ];
    for (const names of named) {
      const attempted = await attempts.next({ ...input, ...names });
      expect(attempted).to.deep.equal({ kind: "ended", end: "superseded" });
    }
    expect(sent).to.deep.equal([]);
    expect((await webhooks.deliveries.findOne({ _id: delivery._id }))?.status).to.equal("pending");
    await attempts.next(input);
    expect(sent, "its own is still sent").to.deep.equal([own.url]);
  });

  it("an endpoint or delivery that something else than the service wrote sends nothing", async () => {
    const webhooks = webhookCollections(database.db);
    const [endpoint, other] = [endpointDocument("org"), endpointDocument("other")];
    const event = eventDocument("org", 0);
    const now = new Date(NOW);
    const delivery = newDelivery({ accessProofs, event, data: {}, endpoint, now, retentionDays: 1 });
    const sent: string[] = [];
    const attempts = new DeliveryAttempts({
      accessProofs,
      webhooks,
      outcomes: new DeliveryOutcomes({ accessProofs, client: database.client, webhooks, clock: atNow }),
      sender: {
        send: ({ url }) => {
          sent.push(url);
          return Promise.resolve({ kind: "failed", reason: "nobody listens", elapsedMs: 1 });
        },
      },
      secrets: { open: () => `whsec_${"A".repeat(44)}` },
      slots: new DeliverySlots(),
      onEndpointDisabled: () => Promise.reject(new Error("nothing is disabled")),
      clock: atNow,
      onAttempt: () => undefined,
    });
    const secret = { ...other.secret, id: "another" };
    const forged: readonly [Partial<EndpointDocument>, Partial<DeliveryDocument>][] = [
      [{ url: "https://elsewhere.example" }, {}],
      [{ secret }, {}],
      [{ previousSecret: { ...secret, expiresAt: new Date(NOW + 1e9) } }, {}],
      [{}, { body: "{}" }],
      [{}, { _id: "dlv_copy" }],
    ];
    for (const [ofEndpoint, ofDelivery] of forged) {
      await webhooks.endpoints.deleteMany({});
      await webhooks.deliveries.deleteMany({});
      await webhooks.endpoints.insertOne({ ...endpoint, ...ofEndpoint });
      await webhooks.deliveries.insertOne({ ...delivery, ...ofDelivery });
      const attempted = await attempts.next(inputOf({ ...delivery, ...ofDelivery }));
      expect(attempted).to.deep.equal({ kind: "ended", end: "dropped" });
    }
    expect(sent).to.deep.equal([]);
  });
});
