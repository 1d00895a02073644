import { setTimeout as sleep } from "node:timers/promises";
import { isGrpcServiceError } from "@temporalio/client";
import { firstLineOf } from "../../src/lib/plain-error.ts";
import type { Connections } from "../../src/store/connections.ts";
import { AdminError, connected } from "./connecting.ts";

export interface RollOutOptions {
  readonly buildId: string;
  /** Share of workflows that go to the version while another stays current; null makes it current. */
  readonly percentage: number | null;
  /** Timeout for the version's workers to start polling. */
  readonly patienceMs: number;
  readonly onProgress: (line: string) => void;
}

export interface RolledOut {
  readonly deployment: string;
  readonly buildId: string;
  readonly percentage: number;
  /** Build that was current before; null for none or for unversioned workers. */
  readonly previousBuildId: string | null;
}

const IDENTITY = "admin roll-out";
const CALL_TIMEOUT_MS = 10_000;
const RETRY_INTERVAL_MS = 500;

/** gRPC codes with which Temporal refuses a version whose workers do not poll all task queues yet. */
const [NOT_FOUND, FAILED_PRECONDITION] = [5, 9];

/** `roll-out`: routes tasks to a build's workers once they poll. */
export const rollOut = (env: NodeJS.ProcessEnv, options: RollOutOptions): Promise<RolledOut> =>
  connected(env, async (connections) => {
    const { buildId, onProgress, patienceMs } = options;
    const untilMs = performance.now() + patienceMs;
    for (let tries = 1; ; tries += 1) {
      try {
        return await setVersion(connections, options);
      } catch (error) {
        if (!isGrpcServiceError(error)) throw error;
        const code: number = error.code;
        if (code !== NOT_FOUND && code !== FAILED_PRECONDITION) throw error;
        if (performance.now() > untilMs) {
          throw new AdminError(
            `No workers with WORKER_BUILD_ID=${buildId} poll for all tasks (${firstLineOf(error.details)}); the current version is unchanged.`,
          );
        }
        if (tries === 1) onProgress(`waiting for workers with WORKER_BUILD_ID=${buildId} …`);
        await sleep(RETRY_INTERVAL_MS);
      }
    }
  });

async function setVersion(
  { addresses, temporal }: Connections,
  { buildId, percentage }: RollOutOptions,
): Promise<RolledOut> {
  const { taskQueue: deploymentName, temporalNamespace: namespace } = addresses;
  const version = { namespace, deploymentName, buildId, identity: IDENTITY };
  const { previousDeploymentVersion: previous } = await temporal.withDeadline(
    Date.now() + CALL_TIMEOUT_MS,
    () =>
      percentage === null
        ? temporal.workflowService.setWorkerDeploymentCurrentVersion(version)
        : temporal.workflowService.setWorkerDeploymentRampingVersion({ ...version, percentage }),
  );
  const previousBuildId = previous?.buildId ?? "";
  return {
    deployment: deploymentName,
    buildId,
    percentage: percentage ?? 100,
    previousBuildId: previousBuildId === "" ? null : previousBuildId,
  };
}
