import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { expect } from "chai";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalActors } from "../../src/actors/temporal.ts";
import { APPROVAL_WORKFLOW, type ApprovalInput, RESOLVED_SIGNAL } from "../../src/messages/approval.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { type PayloadKeys, payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import { TEST_MASTER_KEY, testPayloads } from "../support/payloads.ts";
import { requiredSetting } from "../support/shared-engines.ts";
import { eventsOf } from "./support/history.ts";
import { containers } from "./support/ledger.ts";

const OLD = payloadKeysOf(MasterKey.parse(TEST_MASTER_KEY, "a test"));
const BOTH = payloadKeysOf(
  MasterKey.parseAll(`the-newest-master-key-of-this-test-0123456789 ${TEST_MASTER_KEY}`, "a test"),
);
const LATER_MS = 60_000;

const approvalInput = (expiresAt: number): ApprovalInput => ({
  approvalId: "apr_1",
  transactionId: "txn_1",
  amountCents: 6_000,
  profile: { ...containers, agentId: "agent-1", name: "Agent" },
  flaggedByRuleTypes: ["above_threshold"],
  expiresAt,
  texts: { recipient: "shop", purpose: "a test" },
});

async function during<T>(workers: readonly Worker[], work: () => Promise<T>): Promise<T> {
  const running = Promise.all(workers.map((each) => each.run()));
  try {
    return await work();
  } finally {
    for (const each of workers) each.shutdown();
    await running;
  }
}

describe("workflows whose worker lacks the master key of a payload", () => {
  let connection: Connection;
  let native: NativeConnection;
  let namespace = "";

  before(async () => {
    namespace = requiredSetting("TEST_TEMPORAL_NAMESPACE");
    const address = requiredSetting("TEST_TEMPORAL_ADDRESS");
    connection = await Connection.connect({ address });
    native = await NativeConnection.connect({ address });
  });
  after(async () => {
    await connection.close();
    await native.close();
  });

  const clientWith = (keys: PayloadKeys) =>
    new Client({ connection, namespace, ...testPayloads({ keys }).client });

  const queue = () => ({ connection: native, namespace, taskQueue: `unknown-key-${randomUUID()}` });

  /** Plays an approval on a worker that has the old key alone until it has refused a payload, and both from then on. */
  async function resultOf(expiresAt: number, afterStart: (workflowId: string) => Promise<void>) {
    const refused: string[] = [];
    const keys: PayloadKeys = {
      current: OLD.current,
      keyFor: (id) => (refused.length === 0 ? OLD : BOTH).keyFor(id),
    };
    const { worker } = testPayloads({ keys, onRefused: (_place, why) => void refused.push(why) });
    const activities = { expireApproval: () => Promise.resolve("expired") };
    const on = queue();
    const workers = [
      await Worker.create({ ...on, ...worker, workflowBundle: WORKFLOW_BUNDLE }),
      await Worker.create({ ...on, ...testPayloads({ keys: BOTH }).worker, activities }),
    ];
    return during(workers, async () => {
      const handle = await clientWith(OLD).workflow.start(APPROVAL_WORKFLOW, {
        workflowId: `approval/${on.taskQueue}`,
        taskQueue: on.taskQueue,
        args: [approvalInput(expiresAt)],
      });
      await afterStart(handle.workflowId);
      const result: unknown = await handle.result();
      expect(refused).to.deep.equal(["unknown_key"]);
      const events = await eventsOf(handle);
      expect(events.filter((event) => event.workflowTaskFailedEventAttributes)).to.have.length(1);
      return result;
    });
  }

  it("a signal waits for a worker with the key, and is then heeded", async () => {
    const end = await resultOf(Date.now() + LATER_MS, (workflowId) =>
      clientWith(BOTH).workflow.getHandle(workflowId).signal(RESOLVED_SIGNAL, "approved"),
    );
    expect(end).to.equal("approved");
  });

  it("an activity's result waits for a worker with the key, and is then taken", async () => {
    expect(await resultOf(Date.now(), () => Promise.resolve())).to.equal("expired");
  });

  it("a query that is answered under a key which the server lacks is no answer", async () => {
    const on = queue();
    const { worker } = testPayloads({ keys: BOTH });
    const actorsWith = (keys: PayloadKeys) =>
      new TemporalActors(new TemporalCalls(clientWith(keys), on.taskQueue));
    await during([await Worker.create({ ...on, ...worker, workflowBundle: WORKFLOW_BUNDLE })], async () => {
      const projectId = randomUUID();
      await actorsWith(BOTH).startLedger({ organizationId: containers.organizationId, projectId });
      expect(await actorsWith(BOTH).ledgerState(projectId)).to.not.have.property("refused");
      const asked = actorsWith(OLD).ledgerState(projectId);
      expect(await asked.catch((error: unknown) => error)).to.be.instanceOf(ActorUnavailable);
      await actorsWith(BOTH).endLedger(projectId, "the test is over");
    });
  });
});
