import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Context } from "@temporalio/activity";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { TemporalCalls } from "../../server/actors/calls.ts";
import { startInviteMail } from "../../server/actors/mails.ts";
import { TemporalWebhooks } from "../../server/actors/webhooks.ts";
import { startEngines } from "../../src/engines/start.ts";
import { approvalWorkflowId } from "../../src/messages/approval.ts";
import {
  deliveryWorkflowId,
  replayWorkflowId,
  secretExpiryWorkflowId,
  watchWorkflowId,
  WATCHES,
} from "../../src/messages/delivery.ts";
import { inviteMailWorkflowId } from "../../src/messages/mail.ts";
import { ORGANIZATION_WORKFLOW, organizationWorkflowId } from "../../src/messages/organization.ts";
import { settlementWorkflowId } from "../../src/messages/settlement.ts";
import { confirmation, containers, payCommand, StagedAgent } from "../workflows/support/agent.ts";
import { StagedBudget } from "../workflows/support/budget.ts";
import { SETTLED } from "../workflows/support/doubles.ts";
import { activitiesOf, afterActivities, eventsUntil } from "../workflows/support/history.ts";
import { LINEAGE, machineArchive, replayOfCreate } from "../workflows/support/life.ts";
import type { Stage, StageOptions, Theatre } from "../workflows/support/stage.ts";
import { agentIdOf, openTheatre } from "../workflows/support/stage.ts";
import { HISTORIES_DIRECTORY, toRecord } from "./histories.ts";

/**
 * Records those histories of test/histories that are missing, on an engine of its own:
 * `npm run histories`. When a workflow is added, or changes in a way that no running workflow has to
 * survive, delete what it replaces first. A change that running ones must survive goes through `patched`: keep the old
 * histories, and have what is recorded now written under a new name.
 */
const IDENTITY = "recorder";
const HELD_CENTS = 6_000;
const SLOW_CENTS = 7;

/** Pending when it is sent, settled when it is asked. */
const slowRail: StageOptions = { rail: (_payment, call) => (call === 1 ? { status: "pending" } : SETTLED) };
const discarding: StageOptions = {
  activities: { closeDeliveryWindow: () => Promise.resolve("discarded") },
};
const WINDOW_MS = 2_000;
const provisioned: StageOptions = { activities: { provisionOrganization: () => Promise.resolve() } };

const DELIVERY = {
  organizationId: "organization-recorded",
  endpointId: "endpoint-recorded",
  eventType: "agent.created",
  isTest: false,
};

/** Goes on until its worker ends. */
const endless = (): Promise<never> => Context.current().cancelled;

/** The one delivery arrives, the other is on its way until it is dropped; of what was missed there are two steps. */
function webhooks(): StageOptions {
  let [looks, steps] = [0, 0];
  const look = (): Promise<void> => ((looks += 1) % (LOOKS + 1) === 0 ? endless() : Promise.resolve());
  return {
    activities: {
      deliverWebhook: ({ run }) => (run === 1 ? Promise.resolve("succeeded") : endless()),
      eraseWebhookSecret: () => Promise.resolve(),
      replayWebhooks: () => Promise.resolve((steps += 1) === 2),
      watchEvents: look,
      watchDeposits: look,
    },
  };
}
/** Of each watch, before one that does not end. */
const LOOKS = 2;

const mailed: StageOptions = { activities: { mailInvite: () => Promise.resolve("mailed") } };

/** The last of the scene's agents is looked up as under the cap. */
const capped: StageOptions = {
  activities: {
    agentsUnder: () => Promise.resolve([{ agentId: agentIdOf("budget", 3), teamId: containers.teamId }]),
  },
};

const dataDir = await mkdtemp(join(tmpdir(), "spending-control-record-"));
const engines = await startEngines({
  dataDir,
  env: process.env,
  ports: { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 },
  onProgress: (line) => void process.stdout.write(`${line}\n`),
  onUnexpectedExit: (engine, detail) => void process.stderr.write(`${engine} ended: ${detail}\n`),
});
const { address, namespace } = engines.temporal;
const connection = await Connection.connect({ address });
const native = await NativeConnection.connect({ address });
const client = new Client({ connection, namespace, identity: IDENTITY });
const theatre = await openTheatre({ client, native, taskQueue: "recorded", identity: IDENTITY });
try {
  await recordAll(theatre);
} finally {
  await theatre.close();
  await native.close();
  await connection.close();
  await engines.stop();
  await rm(dataDir, { recursive: true, force: true });
}

async function recordAll(on: Theatre): Promise<void> {
  await mkdir(HISTORIES_DIRECTORY, { recursive: true });
  await on.play("agent", {}, recordAgent);
  await on.play("lived", {}, recordLife);
  await on.play("unused", {}, recordUnused);
  await on.play("discarded", discarding, recordDiscarded);
  await on.play("approved", {}, (stage) => recordApproval(stage, "approve"));
  await on.play("denied", {}, (stage) => recordApproval(stage, "deny"));
  await on.play("expired", {}, recordExpiry);
  await on.play("settled", slowRail, recordSettlement);
  await on.play("organization", provisioned, recordOrganization);
  await on.play("budget", capped, recordBudget);
  await on.play("asking", {}, recordAsking);
  await on.play("webhooks", webhooks(), recordWebhooks);
  await on.play("mailed", mailed, recordInviteMail);
}

/** An agent's whole day: every command, a sweep, and the run that goes on after the roll-over. */
async function recordAgent(stage: Stage): Promise<void> {
  const agent = await StagedAgent.start(stage, { sweepAfterSeconds: 1, rollOverAfterEvents: 100 });
  const [paid, held] = [await agent.pay(100), await agent.pay(HELD_CENTS)];
  const done = [await agent.carryOut(paid), await agent.carryOut(held)];
  await agent.submit(...done.map(confirmation), { kind: "pause" }, payCommand(agent.request(1)));
  await agent.submit(
    { kind: "resume" },
    { kind: "change_policy", patch: { budgetCents: 9_000 }, version: 1 },
  );
  await agent.resolve("deny", held);
  // The new policy's limit, the denied payment, the denial, and the record are left to the actor.
  await afterActivities(agent.handle, 4);
  const first = (await agent.handle.describe()).runId;
  while ((await agent.handle.describe()).runId === first) await agent.pay(1);
  const second = (await agent.handle.describe()).runId;
  await agent.submit({ kind: "pause" });
  await write("agent-mirroring-rolled-over", stage.client.workflow.getHandle(agent.handle.workflowId, first));
  await write("agent-mirroring-resumed", stage.client.workflow.getHandle(agent.handle.workflowId, second));
}

/** An agent with a first key, whose window is short. */
function created(stage: Stage): Promise<StagedAgent> {
  const deliverableUntil = Date.now() + WINDOW_MS;
  const firstKey = { keyId: "akey_recorded", lineageId: LINEAGE, deliverableUntil };
  return StagedAgent.start(stage, { sweepAfterSeconds: 1 }, {}, firstKey);
}

/** An agent's whole life: its window closes, its keys are used and changed, a person archives it, its wallet is detached. */
async function recordLife(stage: Stage): Promise<void> {
  const agent = await created(stage);
  await agent.submit({ kind: "authenticate", keyId: "akey_recorded" });
  await afterActivities(agent.handle, 2);
  await agent.submit(replayOfCreate, { kind: "revoke_key", recordedKeyId: null });
  await agent.submit({ kind: "mint_key", keyId: "akey_second", recordedKeyId: null });
  agent.keyId = "akey_second";
  await agent.submit({ kind: "rename", name: "Another" }, { kind: "pause" });
  await agent.pay(HELD_CENTS);
  await agent.submit({ kind: "resume" });
  await agent.pay(HELD_CENTS);
  await agent.submit({ kind: "archive", by: { type: "user" } });
  await eventsUntil(agent.handle, (events) => activitiesOf(events).includes("detachWallet"));
  await write("agent-life-archived", agent.handle);
}

/** An agent whose key nobody ever got: proven so, and archived by its creator. */
async function recordUnused(stage: Stage): Promise<void> {
  const agent = await created(stage);
  await agent.submit(replayOfCreate, machineArchive);
  await afterActivities(agent.handle, 1);
  await agent.submit(replayOfCreate, machineArchive);
  await afterActivities(agent.handle, 3);
  await write("agent-life-unused", agent.handle);
}

async function recordDiscarded(stage: Stage): Promise<void> {
  const agent = await created(stage);
  await agent.handle.result();
  await write("agent-life-discarded", agent.handle);
}

async function recordApproval(stage: Stage, kind: "approve" | "deny"): Promise<void> {
  const agent = await StagedAgent.start(stage);
  const held = await agent.pay(HELD_CENTS);
  await agent.carryOut(held);
  await agent.carryOut((await agent.resolve(kind, held)).payment);
  const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
  await approval.result();
  await write(kind === "approve" ? "approval-approved" : "approval-denied", approval);
}

async function recordExpiry(stage: Stage): Promise<void> {
  const agent = await StagedAgent.start(stage);
  const held = await agent.pay(HELD_CENTS, 1);
  await agent.carryOut(held);
  const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
  await approval.result();
  await write("approval-expired", approval);
}

async function recordSettlement(stage: Stage): Promise<void> {
  const agent = await StagedAgent.start(stage);
  const payment = await agent.pay(SLOW_CENTS);
  await agent.carryOut(payment);
  const settlement = stage.client.workflow.getHandle(settlementWorkflowId(payment.request.transactionId));
  await settlement.result();
  await write("settlement-approved", settlement);
}

async function recordOrganization(stage: Stage): Promise<void> {
  const input = {
    organizationId: stage.scene,
    defaultProjectId: "project-recorded",
    defaultTeamId: "team-recorded",
  };
  const handle = await stage.client.workflow.start(ORGANIZATION_WORKFLOW, {
    taskQueue: stage.taskQueue,
    workflowId: organizationWorkflowId(stage.scene),
    args: [input],
  });
  await handle.result();
  await write("organization-ready", handle);
}

/**
 * A budget's whole day: reports, grants, refusals, an exemption, replacements that its server carries through and one that
 * is left to the actor, and the run that goes on after the roll-over.
 */
async function recordBudget(stage: Stage): Promise<void> {
  const settings = { sweepAfterSeconds: 1 };
  const start = (number: number) =>
    StagedAgent.start(stage, settings, {}, undefined, { asksForCaps: true, number });
  const [first, second, third] = [await start(1), await start(2), await start(3)];
  const budget = await StagedBudget.start(stage, { ...settings, rollOverAfterEvents: 90 });
  await first.payThrough(100);
  await third.payThrough(100);
  await budget.enrol((await budget.capProject(1, 1_000)).epoch, []);
  await second.payThrough(600);
  await second.payThrough(HELD_CENTS);
  const held = await second.pay(HELD_CENTS);
  await budget.ask("stale", {
    kind: "replace_project",
    version: 1,
    capCents: null,
    teams: [],
    complete: true,
  });
  await second.carryOut(held);
  const { agentId, teamId } = first.profile;
  await budget.replaceTeam(teamId, 1, 500, [{ agentId, budgetCents: 5_000 }]);
  // The first agent's budget, and the third that is to ask, are left to the actor.
  await afterActivities(budget.handle, 2);
  const run = (await budget.handle.describe()).runId;
  while ((await budget.handle.describe()).runId === run) await first.payThrough(1);
  const next = (await budget.handle.describe()).runId;
  await first.payThrough(1);
  const { project } = await budget.state();
  await budget.enrol((await budget.capProject(project.version, 2_000)).epoch, [first]);
  await afterActivities(stage.client.workflow.getHandle(budget.handle.workflowId, next), 1);
  await write("budget-rolled-over", stage.client.workflow.getHandle(budget.handle.workflowId, run));
  await write("budget-resumed", stage.client.workflow.getHandle(budget.handle.workflowId, next));
}

/** An agent that asks: it is refused, asks by its sweep, reports by it what it gave back, is let off, and asks again. */
async function recordAsking(stage: Stage): Promise<void> {
  const agent = await StagedAgent.start(stage, { sweepAfterSeconds: 1 }, {}, undefined, {
    asksForCaps: true,
  });
  const budget = await StagedBudget.start(stage);
  await budget.enrol((await budget.capProject(1, 7_000)).epoch, []);
  await agent.payThrough(100);
  await agent.payThrough(7_000);
  const held = await agent.payThrough(HELD_CENTS);
  // Granted when the actor asks, and refused.
  await agent.pay(200);
  await agent.pay(2_000);
  await afterActivities(agent.handle, 3);
  await agent.carryOut((await agent.resolve("deny", held)).payment);
  await eventsUntil(agent.handle, (events) => activitiesOf(events).includes("reportToBudget"));
  await budget.capProject(2, null);
  await agent.payThrough(300);
  await agent.payThrough(400);
  const replaced = await budget.capProject(3, 1_000);
  await budget.tell(agent, await budget.enrol(replaced.epoch, [agent]));
  await agent.payThrough(500);
  await write("agent-asking", agent.handle);
}

/** Deliveries that arrive and that are dropped, a rotated secret that is erased, a replay, and both watches. */
async function recordWebhooks({ client: on, taskQueue }: Stage): Promise<void> {
  const workflows = new TemporalWebhooks(new TemporalCalls(on, taskQueue));
  const deliveryId = "delivery-recorded";
  await workflows.startDelivery({ ...DELIVERY, deliveryId, run: 1 });
  await workflows.startDelivery({ ...DELIVERY, deliveryId, run: 2 });
  const [arrived, dropped] = [1, 2].map((run) =>
    on.workflow.getHandle(deliveryWorkflowId({ deliveryId, run })),
  );
  if (arrived === undefined || dropped === undefined) throw new Error("there are two deliveries");
  await arrived.result();
  await eventsUntil(dropped, (events) => activitiesOf(events).length === 1);
  await workflows.dropDelivery({ deliveryId, run: 2 });
  await dropped.result();
  const secret = { secretId: "secret-recorded", expiresAt: Date.now() + WINDOW_MS };
  await workflows.startSecretExpiry({ endpointId: DELIVERY.endpointId, ...secret });
  const erased = on.workflow.getHandle(secretExpiryWorkflowId(secret));
  await erased.result();
  await workflows.startReplay({ ...DELIVERY, replayId: "replay-recorded" });
  const replayed = on.workflow.getHandle(replayWorkflowId("replay-recorded"));
  await replayed.result();
  await write("delivery-succeeded", arrived);
  await write("delivery-dropped", dropped);
  await write("secret-expiry-erased", erased);
  await write("replay-queued", replayed);
  for (const what of WATCHES) {
    await workflows.startWatch(what);
    const watching = on.workflow.getHandle(watchWorkflowId(taskQueue, what));
    await afterActivities(watching, LOOKS);
    await write(`watch-${what}`, watching);
    await watching.terminate("it was recorded");
  }
}

async function recordInviteMail({ client: on, taskQueue }: Stage): Promise<void> {
  const input = { inviteId: "invite-recorded", organizationId: "organization-recorded" };
  await startInviteMail(new TemporalCalls(on, taskQueue), input);
  const handle = on.workflow.getHandle(inviteMailWorkflowId(input));
  await handle.result();
  await write("invite-mail-mailed", handle);
}

async function write(name: string, handle: WorkflowHandle): Promise<void> {
  const text = `${JSON.stringify(toRecord(await handle.fetchHistory()))}\n`;
  const file = join(HISTORIES_DIRECTORY, `${name}.json`);
  // Fails where it is there: then it stays as it was recorded, by the code of its time.
  const isNew = await writeFile(file, text, { flag: "wx" }).then(
    () => true,
    () => false,
  );
  process.stdout.write(`${name}: ${isNew ? `${text.length} bytes` : "kept"}\n`);
}
