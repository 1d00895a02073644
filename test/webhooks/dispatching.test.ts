import { expect } from "chai";
import { COLLECTIONS, type EventDocument } from "../../src/store/documents.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { JOURNAL_INDEXES } from "../../src/store/journal.ts";
import { EventDispatcher } from "../../src/webhooks/delivery/dispatcher.ts";
import { webhookCollections } from "../../src/store/webhook-documents.ts";
import { newDelivery } from "../../src/webhooks/delivery/new-delivery.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { someOrAll } from "../support/soak.ts";
import { endpointDocument, eventDocument, HAPPENED, NOW } from "./documents.ts";
import { times } from "../support/world.ts";

const accessProofs = TEST_ACCESS_PROOFS;
const unexpected = () => Promise.reject(new Error("nothing of this is dispatched"));

describe("dispatching of events", () => {
  let database: TestDatabase;
  let load = 0;
  let elapsedMs = 0;
  let begun: { eventId: string; endpointId: string }[];
  /** What else happens when a delivery is begun. */
  let onBegun: () => Promise<void>;
  beforeEach(async () => {
    database = await testDatabase();
    await createIndexes(database.db, JOURNAL_INDEXES);
    load = 0;
    elapsedMs = 0;
    begun = [];
    onBegun = () => Promise.resolve();
  });
  afterEach(() => database.close());

  const dispatcher = () =>
    new EventDispatcher({
      accessProofs,
      db: database.db,
      workflows: {
        startDelivery: async ({ deliveryId, endpointId }) => {
          const delivery = await webhookCollections(database.db).deliveries.findOne({ _id: deliveryId });
          begun.push({ eventId: String(delivery?.eventId), endpointId });
          await onBegun();
        },
        dropDelivery: unexpected,
        startReplay: unexpected,
        startSecretExpiry: unexpected,
      },
      dataOf: () => ({}),
      noticeHeld: null,
      retentionDays: 1,
      clock: () => new Date(NOW),
      load: () => load,
      elapsed: () => elapsedMs,
      onDefect: (message) => {
        throw new Error(message);
      },
    });

  const endpointOf = (organizationId: string) =>
    webhookCollections(database.db).endpoints.insertOne(endpointDocument(organizationId));

  async function happens(
    organizationId: string,
    count: number,
    fields: Partial<EventDocument> = {},
  ): Promise<void> {
    const events = times(count, (index) => eventDocument(organizationId, index, fields));
    await database.db.collection<EventDocument>(COLLECTIONS.events).insertMany(events);
  }

  const begunOf = (organizationId: string) =>
    begun.map(({ eventId }) => eventId).filter((eventId) => eventId.startsWith(`evt_${organizationId}_`));

  const placeOf = (organizationId: string) =>
    begun.findIndex(({ eventId }) => eventId.startsWith(`evt_${organizationId}_`));

  it("a busy process begins few deliveries beside payments, and all of them once it is not", async () => {
    await endpointOf("subscribed");
    await happens("subscribed", 30);
    load = 1;
    const events = dispatcher();
    expect(await events.step()).to.equal("waiting");
    elapsedMs += 1_000;
    expect(await events.step()).to.equal("waiting");
    expect(begun).to.have.lengthOf(5);
    load = 0;
    elapsedMs += 10_000;
    await events.step();
    expect(begunOf("subscribed")).to.deep.equal(
      times(30, (index) => `evt_subscribed_${String(index).padStart(4, "0")}`),
    );
    expect(await events.step()).to.equal("nothing");
  });

  it("a busy process without payments holds nothing back", async () => {
    await endpointOf("subscribed");
    await happens("subscribed", 30, { type: "agent.paused" });
    load = 1;
    await dispatcher().step();
    expect(begun).to.have.lengthOf(30);
  });

  it("payments without a subscriber use up none of the deliveries that may begin", async () => {
    await happens("quiet", 150);
    load = 1;
    const events = dispatcher();
    elapsedMs += 100;
    await events.step();
    expect(await database.db.collection(COLLECTIONS.events).countDocuments({ isPending: true })).to.equal(0);
  });

  it("what a clock that ran ahead has stamped is told now; what has just happened settles first", async () => {
    await endpointOf("subscribed");
    await happens("subscribed", 1, { _id: "evt_subscribed_new", createdAt: new Date(NOW + 1) });
    await happens("subscribed", 1, { _id: "evt_subscribed_ahead", createdAt: new Date(NOW + 3_600_000) });
    await dispatcher().step();
    expect(begunOf("subscribed")).to.deep.equal(["evt_subscribed_ahead"]);
  });

  it("an event that something else than the service has written, or changed, gets no delivery", async () => {
    await endpointOf("subscribed");
    const genuine = eventDocument("subscribed", 0);
    const forged = [
      { ...genuine, _id: "evt_subscribed_copy" },
      { ...eventDocument("subscribed", 1), data: { transaction: { amountCents: 1 } } },
      { ...eventDocument("subscribed", 2), type: "transaction.reversed" },
      { ...eventDocument("other", 3), organizationId: "subscribed" },
    ];
    const events = database.db.collection<{ _id: string }>(COLLECTIONS.events);
    await events.insertMany([genuine, ...forged]);
    await dispatcher().step();
    expect(begun.map(({ eventId }) => eventId)).to.deep.equal([genuine._id]);
    expect(await events.countDocuments({ isPending: true }), "none waits").to.equal(0);
  });

  it("an endpoint that something else than the service has changed gets no delivery", async () => {
    const endpoint = endpointDocument("subscribed");
    const endpoints = database.db.collection<{ _id: string }>("webhook_endpoints");
    await endpoints.insertMany([
      endpoint,
      { ...endpoint, _id: "moved" },
      { ...endpointDocument("other"), organizationId: "subscribed" },
    ]);
    await happens("subscribed", 1);
    await dispatcher().step();
    expect(begun.map(({ endpointId }) => endpointId)).to.deep.equal([endpoint._id]);
  });

  it("the sweep starts a delivery that was not started, but never before its event's turn", async () => {
    const event = eventDocument("subscribed", 0);
    const endpoint = endpointDocument("subscribed");
    const { deliveries } = webhookCollections(database.db);
    const events = dispatcher();
    await happens("subscribed", 1);
    // Some time ago, or by a clock that ran ahead.
    for (const madeAt of [NOW - 10_000, NOW + 3_600_000]) {
      begun = [];
      await deliveries.deleteMany({});
      const now = new Date(madeAt);
      await deliveries.insertOne(
        newDelivery({ accessProofs, event, data: {}, endpoint, now, retentionDays: 1 }),
      );
      await database.db.collection(COLLECTIONS.events).updateMany({}, { $set: { isPending: true } });
      await events.sweep();
      expect(begun).to.deep.equal([]);
      await database.db.collection(COLLECTIONS.events).updateMany({}, { $unset: { isPending: "" } });
      await events.sweep();
      expect(begunOf("subscribed")).to.deep.equal([event._id]);
    }
  });

  it("an organization with hundreds of events keeps no other one waiting", async () => {
    await endpointOf("many");
    await happens("many", 400);
    await Promise.all(["few", "last", "some"].map(endpointOf));
    for (const organizationId of ["few", "last", "some"]) {
      await happens(organizationId, 1, { createdAt: new Date(HAPPENED + 100) });
    }
    const events = dispatcher();
    await events.step();
    for (const organizationId of ["few", "last", "some"]) expect(begunOf(organizationId)).to.have.lengthOf(1);
    expect(begunOf("many").length).to.be.within(1, 200);
  });

  describe("of an organization with fifty endpoints", () => {
    beforeEach(async () => {
      const ids = times(50, (index) => `whe_${index}`);
      const endpoints = ids.map((_id) => endpointDocument("many", { _id }));
      await webhookCollections(database.db).endpoints.insertMany([...endpoints, endpointDocument("some")]);
      await happens("many", 12);
    });

    it("are begun beside another organization's, which come in their turn", async () => {
      await happens("some", 1, { agentId: "another" });
      await dispatcher().step();
      expect(placeOf("some")).to.be.within(0, 16);
    });

    it("do not keep waiting what happens elsewhere meanwhile", async () => {
      const events = dispatcher();
      onBegun = async () => {
        if (begun.length === 5) await happens("some", 1, { createdAt: new Date(HAPPENED) });
      };
      while ((await events.step()) !== "nothing");
      expect(begun).to.have.lengthOf(601);
      expect(placeOf("some")).to.be.within(5, 300);
    });

    it("are begun side by side, each endpoint's in the order of the agent's events", async () => {
      let inFlight = 0;
      let inFlightMax = 0;
      onBegun = async () => {
        inFlight += 1;
        inFlightMax = Math.max(inFlightMax, inFlight);
        await new Promise(setImmediate);
        inFlight -= 1;
      };
      const events = dispatcher();
      while ((await events.step()) !== "nothing");
      expect(inFlightMax).to.be.within(8, 16);
      const order = times(12, (index) => `evt_many_${String(index).padStart(4, "0")}`);
      for (const _id of times(50, (index) => `whe_${index}`)) {
        const own = begun.filter(({ endpointId }) => endpointId === _id).map(({ eventId }) => eventId);
        expect(own).to.deep.equal(order);
      }
    });
  });

  for (const count of someOrAll([8, 50], 1)) {
    it(`a busy process serves ${count} organizations in turn, however little it begins at once`, async () => {
      const organizations = times(count, (index) => `org-${index}`);
      await Promise.all(organizations.map(endpointOf));
      const longAgo = { createdAt: new Date(HAPPENED - 60_000) };
      for (const organizationId of organizations) await happens(organizationId, 3, longAgo);
      await happens("pays", 10);
      load = 1;
      const events = dispatcher();
      for (const _look of times(count, String)) {
        elapsedMs += 400;
        await events.step();
      }
      expect(begun).to.have.lengthOf(2 * count);
      const least = Math.min(...organizations.map((organizationId) => begunOf(organizationId).length));
      expect(least).to.be.at.least(1);
    });
  }

  it("more organizations than one step has room for all get their turn", async () => {
    const organizations = times(50, (index) => `org-${index}`);
    await Promise.all(organizations.map(endpointOf));
    for (const organizationId of organizations) await happens(organizationId, 12);
    const events = dispatcher();
    for (const _step of times(3, () => null)) await events.step();
    for (const organizationId of organizations) expect(begunOf(organizationId)).not.to.deep.equal([]);
    while ((await events.step()) !== "nothing");
    expect(begun).to.have.lengthOf(600);
  });
});
