import {
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from "@temporalio/client";
import { randomBytes } from "node:crypto";
import type { DeliveryKeys } from "../agents/key-deliveries/delivery-keys.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";
import type { TemporalCalls } from "./calls.ts";

const WORKFLOW_TYPE = "agentDeliveryKey";
const SIZE_BYTES = 32;
const GRPC_NOT_FOUND = 5;
/** Lifetime of a key that nothing destroys; longer than any window plus the retries of its end. */
const LIFETIME = "2 days";
/** Longer than `LIFETIME`, so that no worker ever runs the workflow. */
const START_DELAY = "3 days";

/**
 * Delivery keys in Temporal, for servers and workers that share no disk. Each is in the memo of a workflow that never
 * runs, and is deleted with the workflow's history.
 */
export class TemporalDeliveryKeys implements DeliveryKeys {
  readonly #calls: TemporalCalls;

  constructor(calls: TemporalCalls) {
    this.#calls = calls;
  }

  async obtain(agentId: string): Promise<Buffer> {
    const key = randomBytes(SIZE_BYTES);
    const { client, once } = this.#calls;
    try {
      await this.#calls.bounded(() =>
        client.workflow.start(WORKFLOW_TYPE, {
          taskQueue: once.taskQueue,
          workflowId: idOf(agentId),
          memo: { key: key.toString("base64url") },
          startDelay: START_DELAY,
          workflowExecutionTimeout: LIFETIME,
        }),
      );
      return key;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    const found = await this.read(agentId);
    if (found === null) throw new ActorUnavailable("the delivery key is being destroyed");
    return found;
  }

  async read(agentId: string): Promise<Buffer | null> {
    const handle = this.#calls.client.workflow.getHandle(idOf(agentId));
    try {
      const { memo, status } = await this.#calls.bounded(() => handle.describe());
      const key = status.name === "RUNNING" ? memo?.["key"] : undefined;
      return typeof key === "string" ? Buffer.from(key, "base64url") : null;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    }
  }

  async destroy(agentId: string): Promise<void> {
    const { client } = this.#calls;
    const { namespace } = client.options;
    const workflowExecution = { workflowId: idOf(agentId) };
    await this.#calls.bounded(() =>
      client.workflowService
        .deleteWorkflowExecution({ namespace, workflowExecution })
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        }),
    );
  }
}

const idOf = (agentId: string): string => `delivery-key/${agentId}`;

function isNotFound(error: unknown): boolean {
  if (!isGrpcServiceError(error)) return false;
  const code: number = error.code;
  return code === GRPC_NOT_FOUND;
}
