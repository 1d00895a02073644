import type { LogEntry } from "@temporalio/worker";
import { DefaultLogger, NativeConnection, Runtime, Worker } from "@temporalio/worker";
import { createActivities } from "../activities/index.ts";
import { AgentPlaces } from "../activities/inputs/agent-places.ts";
import { judgedInputs } from "../activities/inputs/interceptor.ts";
import { dataConverter } from "../src/lib/payload-compression.ts";
import { webhookTaskQueue } from "../src/messages/delivery.ts";
import type { Connections } from "./connections.ts";
import type { Core } from "./core.ts";
import type { Logger } from "./logger.ts";
import { observedActivities } from "./metrics/observed.ts";
import { WORKFLOW_BUNDLE } from "./workflow-bundle.ts";

/** What it says of a worker that only sends webhooks, as it is meant to. */
const NO_WORKFLOWS = "No workflows registered";

/** Routes what the Temporal SDK logs into our log. Once per process, before anything of it is used. */
export function installRuntime(logger: Logger): void {
  Runtime.install({
    logger: new DefaultLogger("WARN", ({ level, message, meta }: LogEntry) => {
      if (message.startsWith(NO_WORKFLOWS)) return;
      const line = { temporal: meta };
      if (level === "ERROR") logger.error(line, message);
      else logger.warn(line, message);
    }),
    // The service drains by itself; the SDK must not shut workers down beside it.
    shutdownSignals: [],
  });
}

const SHUTDOWN_GRACE = "5 seconds";
/** What waits for receivers in one process. */
const WEBHOOK_ACTIVITIES_MAX = 300;

export interface RunningWorker {
  /** Ends after the tasks at hand; throws what made the worker fail. */
  stop(): Promise<void>;
  readonly failed: Promise<never>;
  /** Workflows that are held in memory. */
  cachedWorkflows(): number;
}

export interface WorkerOptions {
  readonly connections: Connections;
  readonly core: Core;
  readonly logger: Logger;
}

/** Without a chain nobody has one. */
/**
 * How long a workflow's task waits for the worker that has the workflow in its cache, before any other may take it: so late is what
 * a worker that was killed between two tasks has in its cache.
 */
const STICKY_TIMEOUT = "2 seconds";

const NO_TREASURIES = { record: () => Promise.resolve() };

/** Runs a worker with all workflows and activities until it is stopped. */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { connections, core, logger } = options;
  const { taskQueue, temporalAddress: address, temporalNamespace: namespace } = connections.addresses;
  const native = await NativeConnection.connect({ address });
  const interceptors = { activity: [judgedInputs(new AgentPlaces(connections.db), core.onInputRefused)] };
  const worker = await Worker.create({
    connection: native,
    namespace,
    taskQueue,
    workflowBundle: WORKFLOW_BUNDLE,
    dataConverter,
    activities: observedActivities(
      createActivities({
        ...core.effectDependencies,
        agents: core.agents,
        ledgers: core.ledgers,
        ledgerStarter: core.actors,
        onSweepFailed: (id, err) => {
          logger.warn({ err, id }, "the execution of a payment or agent failed and will be repeated");
        },
        auditLog: core.auditLog,
        db: connections.db,
        limits: core.limits,
        windows: core.windows,
        webhooks: core.webhooks.activities,
        mail: core.mail.activities,
        treasuries: core.wallets?.treasuries ?? NO_TREASURIES,
      }),
      core.metrics,
    ),
    interceptors,
    shutdownGraceTime: SHUTDOWN_GRACE,
    stickyQueueScheduleToStartTimeout: STICKY_TIMEOUT,
  });
  const receivers = await Worker.create({
    connection: native,
    namespace,
    taskQueue: webhookTaskQueue(taskQueue),
    dataConverter,
    activities: { ...core.webhooks.activities, ...core.mail.activities },
    maxConcurrentActivityTaskExecutions: WEBHOOK_ACTIVITIES_MAX,
    interceptors,
    shutdownGraceTime: SHUTDOWN_GRACE,
  });
  const run = Promise.all([worker.run(), receivers.run()]);
  await core.webhooks.workflows.startWatch("events");
  if (core.wallets !== null) await core.webhooks.workflows.startWatch("deposits");
  const failed = run.then(
    () => new Promise<never>(() => undefined),
    (error: unknown) => Promise.reject(error),
  );
  failed.catch(() => undefined);
  return {
    failed,
    cachedWorkflows: () => worker.getStatus().numCachedWorkflows,
    async stop() {
      core.webhooks.stopWatching();
      for (const each of [worker, receivers]) if (each.getState() === "RUNNING") each.shutdown();
      await run;
      await core.ledgers.flushAll();
      await core.agents.flushAll();
      await native.close();
    },
  };
}
