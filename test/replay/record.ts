import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Context } from "@temporalio/activity";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { signalHeld, startInviteMail } from "../../src/actors/mails.ts";
import { TemporalWebhooks } from "../../src/actors/webhook-workflows.ts";
import { startEngines } from "../../src/engines/start.ts";
import { approvalWorkflowId } from "../../src/messages/approval.ts";
import { deliveryWorkflowId, replayWorkflowId, secretExpiryWorkflowId } from "../../src/messages/delivery.ts";
import { approvalMailsWorkflowId, inviteMailWorkflowId } from "../../src/messages/mail.ts";
import { ORGANIZATION_WORKFLOW, organizationWorkflowId } from "../../src/messages/organization.ts";
import { railNetworkWorkflowId } from "../../src/messages/rail-network.ts";
import { settlementWorkflowId } from "../../src/messages/settlement.ts";
import { watchWorkflowId, WATCHES } from "../../src/messages/watch.ts";
import { testPayloads } from "../support/payloads.ts";
import { FIRST_KEY, StagedAgent } from "../workflows/support/agent.ts";
import { SETTLED } from "../workflows/support/doubles.ts";
import { activitiesOf, afterActivities, eventsUntil } from "../workflows/support/history.ts";
import { containers, StagedLedger, withAccount } from "../workflows/support/ledger.ts";
import { byPerson, LINEAGE, machineArchive, replayOfCreate } from "../workflows/support/life.ts";
import type { Stage, StageOptions, Theatre } from "../workflows/support/stage.ts";
import { openTheatre } from "../workflows/support/stage.ts";
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
      bookNetworks: ({ since }) => Promise.resolve(since),
    },
  };
}
/** Of each watch, before one that does not end. */
const LOOKS = 2;

const RULES = { project: null, team: 2, agent: null };
/** So many records that together they are compressed. */
const BATCH = 1_200;

const mailed: StageOptions = {
  activities: {
    mailInvite: () => Promise.resolve("mailed"),
    mailApprovals: ({ mail }) => Promise.resolve(mail.kind === "single" ? "sent" : "unsent"),
  },
};

const played: StageOptions = { activities: { playNetworkEffect: () => Promise.resolve() } };

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
const client = new Client({ connection, namespace, identity: IDENTITY, ...testPayloads().client });
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
  await on.play("ledger", {}, recordLedger);
  await on.play("lived", {}, recordLife);
  await on.play("unused", {}, recordUnused);
  await on.play("discarded", discarding, recordDiscarded);
  await on.play("approved", {}, (stage) => recordApproval(stage, "approve"));
  await on.play("denied", {}, (stage) => recordApproval(stage, "deny"));
  await on.play("expired", {}, recordExpiry);
  await on.play("settled", slowRail, recordSettlement);
  await on.play("network", played, recordNetwork);
  await on.play("organization", provisioned, recordOrganization);
  await on.play("webhooks", webhooks(), recordWebhooks);
  await on.play("mailed", mailed, recordInviteMail);
  await on.play("mailed", mailed, recordApprovalMails);
}

/**
 * A ledger's whole day: every kind of decision, a batch so large that it is compressed, sweeps of payments, records, caps and limits, and
 * the run that goes on after the roll-over.
 */
async function recordLedger(stage: Stage): Promise<void> {
  const ledger = await StagedLedger.start(stage, { sweepAfterSeconds: 1, rollOverAfterEvents: 150 });
  const [account, other, third] = await ledger.open(3);
  if (account === undefined || other === undefined || third === undefined) throw new Error("there are three");
  const { agentId } = account;
  const { teamId } = containers;
  const [paid, held] = [await account.pay(100), await account.pay(HELD_CENTS)];
  const done = [await account.execute(paid), await account.execute(held)];
  await ledger.submit(
    ...done.map((each) => account.confirmation(each)),
    { kind: "pause", agentId },
    account.paying(account.request(1)),
  );
  await ledger.submit({ kind: "resume", agentId }, { kind: "follow_rules", teamId, version: 2 });
  await ledger.ask("policy", { kind: "change_policy", agentId, patch: { budgetCents: 9_000 }, version: 1 });
  const budgets = [{ agentId: other.agentId, budgetCents: 9_000 }];
  await ledger.submit(
    { kind: "replace_project", version: 1, capCents: 20_000, teams: [] },
    { kind: "replace_team", teamId, version: 1, capCents: 15_000, agents: budgets },
  );
  await account.resolve("deny", held);
  await ledger.submit(third.following("archived"));
  const records = Array.from({ length: BATCH }, (_none, index) => ({
    agentId: `agent-of-another-project-${String(index)}`,
    revision: 1,
  }));
  await ledger.submit(
    { kind: "confirm_records", records },
    other.paying(other.request(1, { rulesVersions: RULES })),
  );
  // Everything that is unconfirmed is left to the ledger.
  await eventsUntil(ledger.handle, (events) =>
    ["executePayments", "writeAccounts", "writeCaps", "mirrorLimits"].every((name) =>
      activitiesOf(events).includes(name),
    ),
  );
  const first = (await ledger.handle.describe()).runId;
  const rulesVersions = RULES;
  while ((await ledger.handle.describe()).runId === first)
    await ledger.submit(account.paying(account.request(1, { rulesVersions })));
  const second = (await ledger.handle.describe()).runId;
  await ledger.submit({ kind: "pause", agentId }, other.paying(other.request(2, { rulesVersions })));
  const run = stage.client.workflow.getHandle(ledger.handle.workflowId, second);
  // The sweep of what was carried over, what the agent's actor is told, and the records once a timer has fired.
  await afterActivities(run, 3);
  await write("ledger-rolled-over", stage.client.workflow.getHandle(ledger.handle.workflowId, first));
  await write("ledger-resumed", run);
}

/** An agent with a first key, whose window is short. */
function created(stage: Stage, rollOverAfterEvents = 1_000): Promise<StagedAgent> {
  const deliverableUntil = Date.now() + WINDOW_MS;
  const firstKey = { keyId: FIRST_KEY, lineageId: LINEAGE, deliverableUntil };
  return StagedAgent.start(stage, { firstKey, settings: { sweepAfterSeconds: 1, rollOverAfterEvents } });
}

/** An agent's whole life over two runs: its window closes, its keys are used and changed, a person archives it, and it ends. */
async function recordLife(stage: Stage): Promise<void> {
  await withAccount(stage);
  const agent = await created(stage, 60);
  await agent.submit({ kind: "authenticate", keyId: FIRST_KEY }, { kind: "rename", name: "Renamed" });
  await afterActivities(agent.handle, 3);
  await agent.submit(replayOfCreate, { kind: "revoke_key" });
  await agent.submit(
    { kind: "mint_key", keyId: "akey_second" },
    { kind: "follow_status", status: "paused", revision: 7, revokedKeyId: null },
  );
  const first = (await agent.handle.describe()).runId;
  while ((await agent.handle.describe()).runId === first)
    await agent.submit({ kind: "rename", name: "Another" });
  await agent.submit({ kind: "authenticate", keyId: FIRST_KEY }, byPerson);
  await agent.handle.result();
  await write("agent-rolled-over", stage.client.workflow.getHandle(agent.handle.workflowId, first));
  await write("agent-archived", agent.handle);
}

/** An agent whose key was never delivered: proven so, and archived by its creator. */
async function recordUnused(stage: Stage): Promise<void> {
  await withAccount(stage);
  const agent = await created(stage);
  await agent.submit(replayOfCreate, machineArchive);
  await afterActivities(agent.handle, 1);
  await agent.submit(replayOfCreate, machineArchive);
  await agent.handle.result();
  await write("agent-unused", agent.handle);
}

async function recordDiscarded(stage: Stage): Promise<void> {
  await withAccount(stage);
  const agent = await created(stage);
  await agent.handle.result();
  await write("agent-discarded", agent.handle);
}

async function recordApproval(stage: Stage, kind: "approve" | "deny"): Promise<void> {
  const { account } = await withAccount(stage);
  const held = await account.pay(HELD_CENTS);
  await account.execute(held);
  await account.execute((await account.resolve(kind, held)).payment);
  const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
  await approval.result();
  await write(kind === "approve" ? "approval-approved" : "approval-denied", approval);
}

async function recordExpiry(stage: Stage): Promise<void> {
  const { account } = await withAccount(stage);
  const held = await account.pay(HELD_CENTS, 1);
  await account.execute(held);
  const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
  await approval.result();
  await write("approval-expired", approval);
}

async function recordSettlement(stage: Stage): Promise<void> {
  const { account } = await withAccount(stage);
  const payment = await account.pay(SLOW_CENTS);
  await account.execute(payment);
  const settlement = stage.client.workflow.getHandle(settlementWorkflowId(payment.request.transactionId));
  await settlement.result();
  await write("settlement-approved", settlement);
}

/** A sandbox's network does two things with a payment. */
async function recordNetwork(stage: Stage): Promise<void> {
  const { account } = await withAccount(stage);
  const { profile } = account;
  const transactionId = "txn_network";
  const effects = [{ afterSeconds: 0 }, { afterSeconds: 1 }];
  await stage.actors.startRailNetwork(profile, { rail: "card", transactionId, effects });
  const network = stage.client.workflow.getHandle(railNetworkWorkflowId(transactionId));
  await network.result();
  await write("rail-network-played", network);
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
    // An hour is between two reads of networks.
    await afterActivities(watching, what === "networks" ? 1 : LOOKS);
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

function heldPayments(count: number) {
  return Array.from({ length: count }, (_, index) => ({
    approvalId: `apr_${count}_${index}`,
    heldAt: index,
  }));
}

/** Payments that are mailed one by one, and more than an hour has room for, whose digest waits to be tried again. */
async function recordApprovalMails({ client: on, taskQueue }: Stage): Promise<void> {
  const person = { organizationId: "organization-recorded", userId: "user-recorded" };
  const handle = on.workflow.getHandle(approvalMailsWorkflowId(person));
  for (const [count, activities] of [
    [2, 2],
    [20, 3],
  ] as const) {
    await signalHeld(new TemporalCalls(on, taskQueue), person, heldPayments(count));
    await afterActivities(handle, activities);
  }
  await write("approval-mails-waiting", handle);
  await handle.terminate("it was recorded");
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
