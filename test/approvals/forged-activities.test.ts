import { expect } from "chai";
import type { Activities } from "../../activities/types.ts";
import { watchWorkflowId } from "../../src/messages/watch.ts";
import { enveloped, forActivity } from "../../src/messages/envelope.ts";
import { INPUT_REFUSED } from "../../src/temporal/temporal-payloads.ts";
import { sideTaskQueue } from "../../src/messages/task-queues.ts";
import { newWorld, until, type World } from "../support/world.ts";
import { send } from "../support/wire.ts";
import { schedule } from "./scheduled.ts";

const NAMES: Readonly<Record<keyof Activities, true>> = {
  executePayments: true,
  writeAccounts: true,
  tellActors: true,
  writeCaps: true,
  writeAgent: true,
  followInLedger: true,
  expireApproval: true,
  followPayment: true,
  mirrorLimits: true,
  closeDeliveryWindow: true,
  detachWallet: true,
  provisionOrganization: true,
  deliverWebhook: true,
  eraseWebhookSecret: true,
  replayWebhooks: true,
  mailInvite: true,
  mailApprovals: true,
  watchEvents: true,
  watchDeposits: true,
  playNetworkEffect: true,
  bookNetworks: true,
};

/** Effects that an intruder with access to Temporal may have through activities. */
describe("activities that are scheduled past this service", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  it("every one refuses what this service did not seal, and is not tried again", async () => {
    const agent = await world.agent();
    const good = { agentId: agent.id };
    const { taskQueue } = world.service.connections.addresses;
    const all = Object.keys(NAMES).map((name) => ({ name, input: enveloped(forActivity(name), [good])[0] }));
    const calls = [
      ...all,
      { name: "closeDeliveryWindow", input: good },
      { name: "watchEvents", input: undefined },
      { name: "deliverWebhook", input: good, taskQueue: sideTaskQueue(taskQueue, "webhooks") },
    ];
    const ends = await schedule(world.service, calls);
    expect(ends).to.have.length(calls.length);
    for (const { answer, failure, isRetryable } of ends) {
      expect(failure).to.match(new RegExp(`^${INPUT_REFUSED}: `));
      expect([answer, isRetryable], String(failure)).to.deep.equal([null, false]);
    }
    const { body } = await send(world.service.baseUrl, "/metrics");
    expect(String(body)).to.match(/^spending_control_forged_total\{what="payload"\} [1-9]/m);
  });

  it("an input that this service sealed for another workflow's activity is refused", async () => {
    const { addresses, temporal } = world.service.connections;
    const watch = temporal.workflow.getHandle(watchWorkflowId(addresses.taskQueue, "events"));
    const sealed = await until("events are watched", async () => {
      const { events } = await watch.fetchHistory();
      const scheduled = events?.flatMap((event) => event.activityTaskScheduledEventAttributes ?? []) ?? [];
      return scheduled[0]?.input?.payloads?.[0] ?? null;
    });
    const [end] = await schedule(world.service, [{ name: "watchEvents", sealed }]);
    expect(end?.failure).to.match(new RegExp(`^${INPUT_REFUSED}: `));
  });
});
