import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { restartDeliveries } from "../../server/admin/restore-ledger/restore-ledger.ts";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalWebhooks } from "../../src/actors/webhook-workflows.ts";
import { deliveryWorkflowId } from "../../src/messages/delivery.ts";
import { webhookCollections } from "../../src/store/webhook-documents.ts";
import { EventDispatcher } from "../../src/webhooks/delivery/dispatcher.ts";
import { inputOf, newDelivery } from "../../src/webhooks/delivery/new-delivery.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { sharedService } from "../support/service.ts";
import { endpointDocument, eventDocument, NOW } from "./documents.ts";

const accessProofs = TEST_ACCESS_PROOFS;

describe("deliveries after Temporal was restored from a backup", () => {
  let database: TestDatabase;
  before(async () => (database = await testDatabase()));
  after(() => database.close());

  it("one that Temporal lacks is started, a known one is not doubled, an ended one not begun", async () => {
    const { temporal } = (await sharedService()).connections;
    // No worker serves this queue, so that no delivery ends.
    const calls = new TemporalCalls(temporal, `restarted-${randomUUID()}`);
    const workflows = new TemporalWebhooks(calls);
    const organizationId = randomUUID();
    const endpoint = endpointDocument(organizationId);
    const [lost, known, ended] = [0, 1, 2].map((index) => {
      const event = eventDocument(organizationId, index);
      const made = { accessProofs, event, data: {}, endpoint, now: new Date(NOW), retentionDays: 1 };
      const { pendingAction: _started, ...begun } = newDelivery(made);
      return begun;
    });
    if (lost === undefined || known === undefined || ended === undefined) throw new Error("no deliveries");
    const records = [lost, known, { ...ended, status: "succeeded" as const }];
    await webhookCollections(database.db).deliveries.insertMany(records);
    await workflows.startDelivery(inputOf(known));
    const runOf = async (record: typeof lost): Promise<string | null> => {
      const handle = temporal.workflow.getHandle(deliveryWorkflowId(inputOf(record)));
      return handle.describe().then(
        ({ runId }) => runId,
        () => null,
      );
    };
    const before = await runOf(known);
    try {
      await restartDeliveries(database);
      const dispatcher = new EventDispatcher({
        accessProofs,
        db: database.db,
        workflows,
        dataOf: () => ({}),
        noticeHeld: null,
        retentionDays: 1,
        clock: () => new Date(NOW + 3_600_000),
        load: () => 0,
        elapsed: () => 0,
        onDefect: (message) => {
          throw new Error(message);
        },
      });
      expect(await dispatcher.sweep()).to.equal(2);
      expect(await dispatcher.sweep(), "once").to.equal(0);
      expect(await runOf(lost)).to.be.a("string");
      expect(await runOf(known))
        .to.equal(before)
        .and.not.equal(null);
      expect(await runOf(ended)).to.equal(null);
    } finally {
      for (const record of [lost, known])
        await temporal.workflow.getHandle(deliveryWorkflowId(inputOf(record))).terminate();
    }
  });
});
