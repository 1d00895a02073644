import pLimit from "p-limit";
import { TEST_ACCESS_PROOFS } from "../../support/access-proofs.ts";
import { type TextSources, wholePayment, wholeReply } from "../../../src/actors/whole-payment.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@temporalio/client";
import proto from "@temporalio/proto";
import type { NativeConnection } from "@temporalio/worker";
import { Worker } from "@temporalio/worker";
import { MongoClient } from "mongodb";
import { createPaymentEffects, type PaymentEffects } from "../../../src/payments/effects.ts";
import { createActivities } from "../../../activities/index.ts";
import type {
  AgentGateway,
  ConfirmedLedgers,
  LimitMirror,
  PaymentWorkflows,
} from "../../../src/payments/ports.ts";
import type { WebhookActivities } from "../../../src/webhooks/delivery/activities.ts";
import type { Activities } from "../../../activities/types.ts";
import { TemporalCalls } from "../../../src/actors/calls.ts";
import { TemporalActors } from "../../../src/actors/temporal.ts";
import { WORKFLOW_BUNDLE } from "../../../server/workflow-bundle.ts";
import type { Payment } from "../../../src/domain/ledger/payment.ts";
import { agentWorkflowId } from "../../../src/messages/agent.ts";
import { approvalWorkflowId } from "../../../src/messages/approval.ts";
import { ledgerWorkflowId } from "../../../src/messages/ledger.ts";
import type { TemporalPayloads } from "../../../src/temporal/temporal-payloads.ts";
import { testPayloads } from "../../support/payloads.ts";
import { sideTaskQueue, SIDE_QUEUES } from "../../../src/messages/task-queues.ts";
import { settlementWorkflowId } from "../../../src/messages/settlement.ts";
import { eventsOf } from "./history.ts";
import {
  MemoryProjections,
  MemoryRail,
  silentPublishing,
  type RailScript,
  SETTLED,
  VOUCHED,
} from "./doubles.ts";

/** The workflows on an engine, with the real activities over doubles of what lies behind them. */
export interface Stage {
  readonly client: Client;
  /** A client of the same engine that has no key of the service. */
  readonly intruder: Client;
  readonly taskQueue: string;
  /** Part of every id of the scene, so that scenes on one engine do not meet. */
  readonly scene: string;
  readonly rail: MemoryRail;
  readonly projections: MemoryProjections;
  /** The server's way to the workflows, and its effects. */
  readonly actors: TemporalActors;
  readonly effects: PaymentEffects;
  /** What sweeps could not do, by transaction. */
  readonly notSwept: string[];
}

export interface StageOptions {
  readonly rail?: RailScript;
  /** Replaces activities by a test's own. */
  readonly activities?: Partial<Activities>;
  readonly limits?: LimitMirror;
  /**
   * The worker keeps no workflow between two tasks. On the time-skipping server a task that was meant for a worker that is
   * gone comes to no other, unless it was meant for any.
   */
  readonly isForgetful?: boolean;
}

export interface Engine {
  readonly client: Client;
  readonly native: NativeConnection;
  /** Of the client, too; readable ones if missing. */
  readonly payloads?: TemporalPayloads;
  readonly taskQueue: string;
  /** Under which the worker signs what it writes into histories. */
  readonly identity?: string;
  /** See `StageOptions`. */
  readonly isForgetful?: boolean;
  /** Ends workflows between two tasks: the time-skipping server's time is held for ever by one that is ended in the midst of one. */
  readonly endsAtRest?: boolean;
}

export interface Theatre {
  /** Plays a scene to its end, then ends the workflows that it has left behind. */
  play(scene: string, options: StageOptions, plot: (stage: Stage) => Promise<void>): Promise<void>;
  /** Whether no workflow of the scene, nor an activity of one, is at work just now. */
  isAtRest(): Promise<boolean>;
  /** Lets something happen while no worker is there; the one that comes after it knows nothing of any workflow. */
  withoutWorker(work: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** The first agent of a scene has no number. */
export const agentIdOf = (scene: string, number = 1): string =>
  number === 1 ? `agent-${scene}` : `agent-${scene}-${number}`;

/** Agents of one scene. */
const CAST_MAX = 3;

export const projectIdOf = (scene: string): string => `project-${scene}`;

/** Opens a worker on an engine that plays one scene after another, each with doubles of its own. */
export async function openTheatre(engine: Engine): Promise<Theatre> {
  const { client, endsAtRest = false, identity, isForgetful = false, native, payloads, taskQueue } = engine;
  const sealing = (payloads ?? testPayloads()).worker;
  let cast: Activities | null = null;
  let played: ReadonlySet<string> = new Set();
  const current = (): Activities => {
    if (cast === null) throw new Error("an activity was called between two scenes");
    return cast;
  };
  const openWorker = async (): Promise<() => Promise<void>> => {
    const worker = await Worker.create({
      connection: native,
      namespace: client.options.namespace,
      taskQueue,
      workflowBundle: WORKFLOW_BUNDLE,
      ...sealing,
      activities: delegatingTo(current),
      ...(identity === undefined ? {} : { identity }),
      ...(isForgetful ? { maxCachedWorkflows: 0 } : {}),
    });
    const waiting = await Promise.all(
      SIDE_QUEUES.map((waitedFor) =>
        Worker.create({
          connection: native,
          namespace: client.options.namespace,
          taskQueue: sideTaskQueue(taskQueue, waitedFor),
          ...sealing,
          activities: delegatingTo(current),
          ...(identity === undefined ? {} : { identity }),
        }),
      ),
    );
    const workers = [worker, ...waiting];
    const running = Promise.all(workers.map((each) => each.run()));
    return async () => {
      for (const each of workers) each.shutdown();
      await running;
    };
  };
  let closeWorker = await openWorker();
  return {
    async play(scene, options, plot) {
      const { activities, stage, workflowIds } = setUp(engine, scene, options);
      cast = activities;
      played = workflowIds;
      try {
        await plot(stage);
      } finally {
        for (const workflowId of workflowIds) {
          if (endsAtRest) await atRest(client, workflowId);
          await end(client, workflowId);
        }
        // A scene that ran out of time may end within the next one.
        if (cast === activities) cast = null;
      }
    },
    async isAtRest() {
      for (const workflowId of played) if (!(await rests(client, workflowId))) return false;
      return true;
    },
    async withoutWorker(work) {
      await closeWorker();
      try {
        await work();
      } finally {
        closeWorker = await openWorker();
      }
    },
    close: () => closeWorker(),
  };
}

function setUp({ client, taskQueue }: Engine, scene: string, options: StageOptions) {
  const rail = new MemoryRail(options.rail ?? (() => SETTLED));
  const projections = new MemoryProjections();
  const actors = new TemporalActors(new TemporalCalls(client, taskQueue));
  const workflowIds = new Set([ledgerWorkflowId(projectIdOf(scene))]);
  for (let number = 1; number <= CAST_MAX; number += 1)
    workflowIds.add(agentWorkflowId(agentIdOf(scene, number)));
  const notSwept: string[] = [];
  const dependencies = {
    rails: { card: rail, wallet: rail },
    projections,
    workflows: noting(workflowIds, actors),
    publisher: silentPublishing,
    ledgers: ledgersOver(actors, { projections, proofs: VOUCHED, workflows: actors }),
    proofs: VOUCHED,
    clock: () => new Date(),
    monotonicMs: () => performance.now(),
  };
  // Never connected: only `provisionOrganization` uses it, and the scenes bring their own.
  const db = new MongoClient("mongodb://127.0.0.1:1").db();
  const activities: Activities = {
    ...createActivities({
      ...dependencies,
      accessProofs: TEST_ACCESS_PROOFS,
      agents: agentsOver(actors),
      auditLog: { append: () => Promise.resolve() },
      db,
      ledgerStarter: actors,
      limits: options.limits ?? { mirror: () => Promise.resolve() },
      onSweepFailed: (transactionId) => void notSwept.push(transactionId),
      windows: { close: () => Promise.resolve("committed") },
      treasuries: { record: () => Promise.resolve() },
      webhooks: NO_WEBHOOKS,
      mail: { mailInvite: notPlayed, mailApprovals: notPlayed },
    }),
    ...options.activities,
  };
  const effects = createPaymentEffects(dependencies);
  const { connection, options: clientOptions } = client;
  const intruder = new Client({ connection, namespace: clientOptions.namespace });
  const stage: Stage = { client, intruder, taskQueue, scene, rail, projections, actors, effects, notSwept };
  return { activities, stage, workflowIds };
}

/** Scenes of webhooks and mail bring their own. */
const notPlayed = () => Promise.reject(new Error("neither webhooks nor mail are in this scene"));
const NO_WEBHOOKS: WebhookActivities = {
  deliverWebhook: notPlayed,
  eraseWebhookSecret: notPlayed,
  replayWebhooks: notPlayed,
  watchEvents: notPlayed,
  watchDeposits: notPlayed,
};

/** Each command in an update of its own. */
export const agentsOver = (actors: Pick<TemporalActors, "submit">): AgentGateway => ({
  submit: async (agentId, command) => only((await actors.submit(agentId, [command])).replies),
});

/** A scene has no mailboxes, whose batches keep to the updates that Temporal takes at once of one workflow. */
const UPDATES_AT_ONCE = 8;

export const ledgersOver = (
  actors: Pick<TemporalActors, "submitToLedger">,
  texts: TextSources,
): ConfirmedLedgers => {
  const slots = pLimit(UPDATES_AT_ONCE);
  return {
    async submit(place, command) {
      const { replies } = await slots(() => actors.submitToLedger(place, [command]));
      const reply = only(replies);
      const agentId = "agentId" in command ? command.agentId : "";
      return wholeReply(reply, (payment) => wholePayment(texts, { ...place, agentId }, payment));
    },
    confirmLater(place, confirmation, published) {
      const confirm = () => slots(() => actors.submitToLedger(place, [confirmation]));
      // A lost confirmation costs a sweep.
      void published.then(confirm).catch(() => undefined);
    },
  };
};

export function only<T>(values: readonly T[]): T {
  const [value] = values;
  if (value === undefined || values.length > 1) throw new Error(`not one but ${String(values.length)}`);
  return value;
}

/** Keeps the ids of the workflows that are started. */
function noting(workflowIds: Set<string>, workflows: PaymentWorkflows): PaymentWorkflows {
  const note = ({ approval, request }: Payment): void => {
    if (approval !== null) workflowIds.add(approvalWorkflowId(approval.id));
    workflowIds.add(settlementWorkflowId(request.transactionId));
  };
  return {
    startApproval(profile, payment) {
      note(payment);
      return workflows.startApproval(profile, payment);
    },
    endApproval(profile, payment, resolution) {
      note(payment);
      return workflows.endApproval(profile, payment, resolution);
    },
    startSettlement(profile, payment) {
      note(payment);
      return workflows.startSettlement(profile, payment);
    },
    textsOf: (payment) => workflows.textsOf(payment),
  };
}

const delegatingTo = (cast: () => Activities): Activities => ({
  executePayments: (input) => cast().executePayments(input),
  tellActors: (input) => cast().tellActors(input),
  writeAccounts: (input) => cast().writeAccounts(input),
  writeCaps: (input) => cast().writeCaps(input),
  writeAgent: (input) => cast().writeAgent(input),
  followInLedger: (input) => cast().followInLedger(input),
  expireApproval: (input) => cast().expireApproval(input),
  followPayment: (input) => cast().followPayment(input),
  mirrorLimits: (input) => cast().mirrorLimits(input),
  closeDeliveryWindow: (input) => cast().closeDeliveryWindow(input),
  detachWallet: (input) => cast().detachWallet(input),
  provisionOrganization: (input) => cast().provisionOrganization(input),
  mailInvite: (input) => cast().mailInvite(input),
  mailApprovals: (input) => cast().mailApprovals(input),
  deliverWebhook: (input) => cast().deliverWebhook(input),
  eraseWebhookSecret: (input) => cast().eraseWebhookSecret(input),
  replayWebhooks: (input) => cast().replayWebhooks(input),
  watchEvents: () => cast().watchEvents(),
  watchDeposits: () => cast().watchDeposits(),
  playNetworkEffect: (input) => cast().playNetworkEffect(input),
  bookNetworks: (input) => cast().bookNetworks(input),
});

const REST_LOOKS_MAX = 60;
const REST_LOOK_MS = 20;
const STARTED = proto.temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_STARTED;

/** Whether neither the workflow nor an activity of it is at work just now, or it has ended, or was never started. */
async function rests(client: Client, workflowId: string): Promise<boolean> {
  const handle = client.workflow.getHandle(workflowId);
  const found = await handle.describe().catch(() => null);
  if (found?.status.name !== "RUNNING") return true;
  if ((found.raw.pendingActivities ?? []).some(({ state }) => state === STARTED)) return false;
  const last = (await eventsOf(handle)).at(-1);
  // The time-skipping server tells of such a task in the history alone.
  const task = last?.workflowTaskScheduledEventAttributes ?? last?.workflowTaskStartedEventAttributes;
  return (task ?? null) === null;
}

/** Waits for a moment in which it rests; not for long. */
export async function atRest(client: Client, workflowId: string): Promise<void> {
  for (let look = 0; look < REST_LOOKS_MAX; look += 1) {
    if (await rests(client, workflowId)) return;
    await sleep(REST_LOOK_MS);
  }
}

/** Ends a workflow, if it was ever started and has not ended. */
async function end(client: Client, workflowId: string): Promise<void> {
  await client.workflow
    .getHandle(workflowId)
    .terminate("the scene is over")
    .catch(() => undefined);
}
