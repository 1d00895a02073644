import { traced } from "../src/lib/tracing.ts";
import { isIP } from "node:net";
import { isGrpcServiceError } from "@temporalio/client";
import type { Context as ActivityContext } from "@temporalio/activity";
import type { ActivityExecuteInput, LogEntry, WorkerOptions as SdkOptions } from "@temporalio/worker";
import { DefaultLogger, NativeConnection, Runtime, Worker } from "@temporalio/worker";
import type { Activities } from "../activities/types.ts";
import { createActivities } from "../activities/index.ts";
import { perRail } from "../src/domain/ledger/payment.ts";
import { sideTaskQueue, SIDE_QUEUES, type SideQueue } from "../src/messages/task-queues.ts";
import { endCallContext } from "../src/lib/call-context.ts";
import { firstLineOf } from "../src/lib/plain-error.ts";
import type { Connections } from "../src/store/connections.ts";
import { type TemporalSecurity, unreachable } from "../src/store/temporal-connection.ts";
import { type Core, flushActors } from "./core.ts";
import type { Logger } from "../src/lib/logger.ts";
import { observedActivities } from "../src/metrics/observed.ts";
import { WORKFLOW_BUNDLE } from "./workflow-bundle.ts";

/** The SDK's warning about a worker that deliberately has only activities. */
const NO_WORKFLOWS = "No workflows registered";

/** Routes the Temporal SDK's log to the service's. Must run once per process, before the SDK is used. */
export function installRuntime(logger: Logger): void {
  Runtime.install({
    logger: new DefaultLogger("WARN", ({ level, message, meta }: LogEntry) => {
      if (message.startsWith(NO_WORKFLOWS)) return;
      const line = { temporal: meta };
      if (level === "ERROR") logger.error(line, message);
      else logger.warn(line, message);
    }),
    // The service drains by itself. The SDK must not shut workers down in parallel.
    shutdownSignals: [],
  });
}

interface Share {
  /** Maximum concurrent activities of the process in this queue. */
  readonly maxConcurrentActivityTaskExecutions: number;
  readonly maxActivitiesPerSecond?: number;
}

/**
 * Limit for settlements. A thousand payments that become final in the same block are settled over half a minute; at
 * once they would starve approvals, expiries and sweeps, for which a person waits.
 */
const SETTLEMENTS_PER_SECOND = 40;

const SHARES: Readonly<Record<SideQueue, Share>> = {
  ...perRail(() => ({ maxConcurrentActivityTaskExecutions: 100 })),
  settlements: {
    maxConcurrentActivityTaskExecutions: 200,
    maxActivitiesPerSecond: SETTLEMENTS_PER_SECOND,
  },
  webhooks: { maxConcurrentActivityTaskExecutions: 300 },
};
/** Concurrent polls of side queues, where few activities arrive at once. */
const WAITING_POLLS = 2;

export interface RunningWorker {
  /** Ends after the current tasks. Throws the error that made the worker fail. */
  stop(): Promise<void>;
  readonly failed: Promise<never>;
  /** Reconnects and continues to work there. If it throws `EngineUnreachable`, nothing has changed. */
  readonly renew: (security: TemporalSecurity) => Promise<void>;
  cachedWorkflows(): number;
}

export interface WorkerOptions {
  readonly connections: Connections;
  readonly core: Core;
  readonly logger: Logger;
  /** Time that activities have left when the worker stops. */
  readonly graceMs: number;
  /** Build id of this worker's code; null: the engine gives any worker any task. */
  readonly buildId: string | null;
}

/**
 * Maximum wait of a workflow task for the worker that has the workflow cached, and so the delay after that worker was
 * killed.
 */
const STICKY_TIMEOUT = "2 seconds";

/**
 * Maximum workflows cached by a worker, each of about 600 kB. Others are replayed when next needed, which adds about 10
 * ms to an idle agent's first payment. The SDK's default, from the heap size, is ten times as many.
 */
const CACHED_WORKFLOWS_MAX = 250;
/**
 * Maximum workflow tasks executed concurrently. One thread executes them all: where processors are short, replays of
 * ledgers beside each other would all exceed their tasks' timeout and begin anew.
 */
const WORKFLOW_TASKS_MAX = 3;

/** Used without a chain, which means without treasuries. */
const NO_TREASURIES = { record: () => Promise.resolve() };

/**
 * Moves every workflow to the current version: actors live for years and approvals for days, which no old worker should
 * have to outlive. The replay of recorded histories limits what a version may change.
 */
const versionOf = ({ buildId, connections }: WorkerOptions): Pick<SdkOptions, "workerDeploymentOptions"> =>
  buildId === null
    ? {}
    : {
        workerDeploymentOptions: {
          version: { deploymentName: connections.addresses.taskQueue, buildId },
          useWorkerVersioning: true,
          defaultVersioningBehavior: "AUTO_UPGRADE",
        },
      };

function activitiesOf({ connections, core, logger }: WorkerOptions): Activities {
  const activities = createActivities({
    ...core.effectDependencies,
    agents: core.agents,
    ledgers: core.ledgers,
    ledgerStarter: core.actors,
    onSweepFailed: (id, err) => {
      logger.warn({ err, id }, "the sweep of a payment or agent failed and will be retried");
    },
    auditLog: core.auditLog,
    accessProofs: core.accessProofs,
    db: connections.db,
    limits: core.limits,
    windows: core.windows,
    webhooks: core.webhooks.activities,
    mail: core.mail.activities,
    treasuries: core.wallets?.treasuries ?? NO_TREASURIES,
  });
  return observedActivities(activities, core.metrics);
}

/** Interval at which a host name with several frontends is resolved again, to spread calls over those available. */
const RESOLUTION_INTERVAL = "30 seconds";

const isAddress = (address: string): boolean =>
  isIP(address.replace(/:\d+$/, "").replaceAll(/[[\]]/g, "")) !== 0;

async function connectNative(address: string, security: TemporalSecurity | null): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect({
      address,
      ...security?.options,
      ...(isAddress(address) ? {} : { dnsLoadBalancingConfig: { resolutionInterval: RESOLUTION_INTERVAL } }),
    });
  } catch (error) {
    throw unreachable(address, security, firstLineOf(error), error);
  }
}

const PROBE_TIMEOUT_MS = 2_000;

/**
 * Returns the cause of a worker's failure. After a TLS or key problem the worker throws an arbitrary error; a call on
 * the connection reveals whether that is the cause.
 */
export async function failureOf(
  { addresses, temporal, temporalSecurity }: Connections,
  error: unknown,
): Promise<unknown> {
  try {
    await temporal.withDeadline(Date.now() + PROBE_TIMEOUT_MS, () =>
      temporal.workflowService.getSystemInfo({}),
    );
    return error;
  } catch (refusal) {
    const reason = isGrpcServiceError(refusal) ? refusal.details : firstLineOf(refusal);
    return unreachable(addresses.temporalAddress, temporalSecurity, reason, error);
  }
}

const tracedActivities = ({ info }: ActivityContext) => ({
  inbound: {
    execute: (input: ActivityExecuteInput, next: (input: ActivityExecuteInput) => Promise<unknown>) =>
      traced(
        `activity ${info.activityType}`,
        { attributes: { "workflow.id": info.workflowExecution?.workflowId ?? "" } },
        () => next(input),
      ),
  },
});

export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { connections, core } = options;
  const { taskQueue, temporalAddress: address, temporalNamespace: namespace } = connections.addresses;
  let native = await connectNative(address, connections.temporalSecurity);
  const { dataConverter, interceptors } = connections.payloads.worker;
  const common = {
    ...versionOf(options),
    connection: native,
    namespace,
    dataConverter,
    interceptors: { ...interceptors, activity: [tracedActivities, ...(interceptors.activity ?? [])] },
    activities: activitiesOf(options),
    shutdownGraceTime: options.graceMs,
  };
  const worker = await Worker.create({
    ...common,
    taskQueue,
    workflowBundle: WORKFLOW_BUNDLE,
    stickyQueueScheduleToStartTimeout: STICKY_TIMEOUT,
    maxCachedWorkflows: CACHED_WORKFLOWS_MAX,
    maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASKS_MAX,
  });
  const waiting = await Promise.all(
    SIDE_QUEUES.map((waitedFor) =>
      Worker.create({
        ...common,
        taskQueue: sideTaskQueue(taskQueue, waitedFor),
        ...SHARES[waitedFor],
        maxConcurrentActivityTaskPolls: WAITING_POLLS,
      }),
    ),
  );
  const workers = [worker, ...waiting];
  const run = Promise.all(workers.map((each) => each.run()));
  await core.webhooks.workflows.startWatch("events");
  await core.webhooks.workflows.startWatch("networks");
  if (core.wallets !== null) await core.webhooks.workflows.startWatch("deposits");
  const failed = run.then(
    () => new Promise<never>(() => undefined),
    async (error: unknown) => Promise.reject(await failureOf(connections, error)),
  );
  failed.catch(() => undefined);
  return {
    failed,
    renew: async (security) => {
      const renewed = await connectNative(address, security);
      const previous = native;
      native = renewed;
      for (const each of workers) each.connection = renewed;
      await previous.close();
      endCallContext(previous);
    },
    cachedWorkflows: () => worker.getStatus().numCachedWorkflows,
    async stop() {
      core.webhooks.stopWatching();
      for (const each of workers) if (each.getState() === "RUNNING") each.shutdown();
      await run;
      await flushActors(core, options.graceMs, options.logger);
      await native.close();
      endCallContext(native);
    },
  };
}
