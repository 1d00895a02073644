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

/** The SDK's warning about a worker that has only activities on purpose. */
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

interface Share {
  /** Activities of one process that wait for the same thing at once. */
  readonly maxConcurrentActivityTaskExecutions: number;
  /** That begin in a second. */
  readonly maxActivitiesPerSecond?: number;
}

/**
 * A thousand payments that become final with the same block are settled over half a minute: all at once they would take the process
 * from approvals, expiries and sweeps, which have a person waiting.
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
/** Their calls that ask the engine for work: few come at once. */
const WAITING_POLLS = 2;

export interface RunningWorker {
  /** Ends after the tasks at hand; throws what made the worker fail. */
  stop(): Promise<void>;
  readonly failed: Promise<never>;
  /** Connects anew, then works there. Throws `EngineUnreachable` and changes nothing. */
  readonly renew: (security: TemporalSecurity) => Promise<void>;
  /** Workflows that are held in memory. */
  cachedWorkflows(): number;
}

export interface WorkerOptions {
  readonly connections: Connections;
  readonly core: Core;
  readonly logger: Logger;
  /** Time that activities have left when the worker stops. */
  readonly graceMs: number;
  /** Of this worker's code; null: the engine gives any worker any task. */
  readonly buildId: string | null;
}

/**
 * Maximum wait of a workflow task for the worker that has the workflow in its cache, and so the delay after that
 * worker was killed.
 */
const STICKY_TIMEOUT = "2 seconds";

/**
 * Workflows whose state a worker has in memory; the others are replayed when they are next needed, which takes an idle agent's first payment some
 * 10 ms. Each takes some 600 kB. The SDK's default, by the size of the heap, is ten times as many.
 */
const CACHED_WORKFLOWS_MAX = 250;

/** Without a chain there are none. */
const NO_TREASURIES = { record: () => Promise.resolve() };

/**
 * Every workflow goes on with the version that is current: actors live for years, approvals for days, and an old worker need not outlive
 * them. What a version may change is held by the replay of recorded histories.
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
      logger.warn({ err, id }, "the execution of a payment or agent failed and will be repeated");
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

/** Re-reads the addresses of a name that several frontends have, so that calls are spread over those that are there. */
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

const PROBE_MS = 2_000;

/** A worker that TLS or a key has ended throws any error; a call on the connection says whether that is why. */
export async function failureOf(
  { addresses, temporal, temporalSecurity }: Connections,
  error: unknown,
): Promise<unknown> {
  try {
    await temporal.withDeadline(Date.now() + PROBE_MS, () => temporal.workflowService.getSystemInfo({}));
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

/** Runs a worker with all workflows and activities until it is stopped. */
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
