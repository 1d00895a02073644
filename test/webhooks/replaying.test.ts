import { expect } from "chai";
import { COLLECTIONS, type EventDocument } from "../../src/store/documents.ts";
import { type ReplayRecord, webhookCollections } from "../../src/store/webhook-documents.ts";
import { Redeliveries } from "../../src/webhooks/delivery/redeliveries.ts";
import { type DeliveryInput, deliveryWorkflowId } from "../../src/messages/delivery.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times } from "../support/world.ts";
import { endpointDocument, eventDocument, NOW } from "./documents.ts";

const ORGANIZATION = "org";
const ENDPOINT = endpointDocument(ORGANIZATION)._id;
const unexpected = () => Promise.reject(new Error("a replay does nothing of this"));

describe("a replay", () => {
  let database: TestDatabase;
  let begun: DeliveryInput[];
  let defects: string[];
  let failing = 0;
  beforeEach(async () => {
    database = await testDatabase();
    begun = [];
    defects = [];
    failing = 0;
  });
  afterEach(() => database.close());

  const webhooks = () => webhookCollections(database.db);

  function redeliveries(deliveriesMax?: number): Redeliveries {
    return new Redeliveries({
      accessProofs: TEST_ACCESS_PROOFS,
      db: database.db,
      workflows: {
        startDelivery: (input) => {
          failing -= 1;
          if (failing === 0) return Promise.reject(new Error("Temporal is away"));
          begun.push(input);
          return Promise.resolve();
        },
        dropDelivery: unexpected,
        startReplay: unexpected,
        startSecretExpiry: unexpected,
      },
      dataOf: ({ _id }) => {
        if (_id.endsWith("_0002_odd")) throw new Error("an unknown event");
        return {};
      },
      retentionDays: 30,
      clock: () => new Date(NOW),
      onDefect: (message) => defects.push(message),
      ...(deliveriesMax === undefined ? {} : { deliveriesMax }),
    });
  }

  async function happened(count: number, ending = ""): Promise<EventDocument[]> {
    const events = times(count, (index) => {
      const at = { createdAt: new Date(NOW - 60_000 + index) };
      const { _id } = eventDocument(ORGANIZATION, index);
      return eventDocument(ORGANIZATION, index, index === 2 ? { ...at, _id: `${_id}${ending}` } : at);
    });
    await database.db.collection<EventDocument>(COLLECTIONS.events).insertMany(events);
    return events;
  }

  /** Asks for a replay and makes all its steps. */
  async function replayed(since: number, from: Redeliveries): Promise<ReplayRecord> {
    const replay: ReplayRecord = {
      id: "whr",
      since: new Date(since),
      until: new Date(NOW),
      state: "running",
      examined: 0,
      queued: 0,
      position: null,
      endedAt: null,
    };
    const endpoint = { ...endpointDocument(ORGANIZATION), replay };
    await webhooks().endpoints.replaceOne({ _id: ENDPOINT }, endpoint, { upsert: true });
    while (!(await from.replay({ organizationId: ORGANIZATION, endpointId: ENDPOINT, replayId: "whr" })));
    const ended = await webhooks().endpoints.findOne({ _id: ENDPOINT });
    if (ended?.replay === undefined || ended.replay === null) throw new Error("it has lost its replay");
    return ended.replay;
  }

  it("that may queue no more says how far it came, and none is left out by the next", async () => {
    const events = await happened(20);
    const from = redeliveries(3);
    let since = 0;
    const states: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const { examined, position, queued, state } = await replayed(since, from);
      states.push(state);
      expect(queued).to.be.at.most(3);
      if (state === "done") break;
      if (round === 0) expect([examined, position?.eventId]).to.deep.equal([3, events[2]?._id]);
      since = position?.at.getTime() ?? 0;
    }
    expect(states.at(-1)).to.equal("done");
    const delivered = (await webhooks().deliveries.find().toArray()).map(({ eventId }) => eventId);
    expect(delivered).to.have.members(events.map(({ _id }) => _id));
    expect(begun).to.have.lengthOf(20);
  });

  it("leaves out an event that this version can't tell, says so, and goes on", async () => {
    await happened(5, "_odd");
    const replay = await replayed(0, redeliveries());
    expect(replay).to.include({ state: "done", examined: 5, queued: 4 });
    expect(defects).to.have.lengthOf(1);
  });

  it("begins what has no record any more in a run of its own, which the record names", async () => {
    await happened(1);
    failing = 1;
    const from = redeliveries();
    await replayed(0, from).catch(() => null);
    expect(begun).to.deep.equal([]);
    const [record] = await webhooks().deliveries.find().toArray();
    // The sweep finds it, and begins the very run that the record names.
    expect(record).to.include({ pendingAction: "start" });
    const first = { deliveryId: record?._id ?? "", run: 1 };
    expect(deliveryWorkflowId({ ...first, run: record?.run ?? 1 })).not.to.equal(deliveryWorkflowId(first));
  });
});
