import type { Client } from "@temporalio/client";
import {
  isGrpcServiceError,
  QueryNotRegisteredError,
  QueryRejectedError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from "@temporalio/client";
import type { Duration, TypedSearchAttributes } from "@temporalio/common";
import { ActorUnavailable } from "./actor-unavailable.ts";

const DEFECTS = [
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  QueryNotRegisteredError,
  QueryRejectedError,
] as const;

/** gRPC's number for a message that is not as it should be. */
const GRPC_INVALID_ARGUMENT = 3;

/** Deadline of one call to the engine: a client is answered within 5 s, whatever is down. */
const CALL_DEADLINE_MS = 4_000;

export interface StartOptions {
  readonly typedSearchAttributes?: TypedSearchAttributes;
  readonly staticSummary: string;
  readonly workflowTaskTimeout?: Duration;
}

/** Calls to Temporal, each bounded in time. */
export class TemporalCalls {
  readonly client: Client;
  /** Options by which one id starts one workflow, once. */
  readonly once: { readonly taskQueue: string; readonly workflowIdReusePolicy: "REJECT_DUPLICATE" };

  constructor(client: Client, taskQueue: string) {
    this.client = client;
    this.once = { taskQueue, workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE };
  }

  /** Throws `ActorUnavailable` where there is no answer in time; what waiting does not mend, as it is. */
  async bounded<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await this.client.withDeadline(Date.now() + CALL_DEADLINE_MS, call);
    } catch (error) {
      if (isDefect(error)) throw error;
      throw new ActorUnavailable("the actor did not answer", { cause: error });
    }
  }

  /** Starts a workflow; once, however often it is called with the same id. */
  async startOnce(type: string, workflowId: string, args: unknown[], options: StartOptions): Promise<void> {
    await this.ignoringStarted(() =>
      this.client.workflow.start(type, { ...this.once, ...options, workflowId, args }),
    );
  }

  /** A workflow that has been started, or has ended, is as good as this call would make it. */
  async ignoringStarted(call: () => Promise<unknown>): Promise<void> {
    try {
      await this.bounded(call);
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }

  /** A workflow's result; null when it takes longer than the bound, or fails. */
  async resultWithin<T>(workflowId: string, withinMs: number): Promise<T | null> {
    const handle = this.client.workflow.getHandle<() => Promise<T>>(workflowId);
    try {
      return await this.client.withDeadline(Date.now() + withinMs, () => handle.result());
    } catch {
      return null;
    }
  }
}

/** Whether waiting does not mend it: an actor that is gone, a message it does not take, an id that is in use. */
function isDefect(error: unknown): boolean {
  if (isGrpcServiceError(error)) {
    const code: number = error.code;
    return code === GRPC_INVALID_ARGUMENT;
  }
  return DEFECTS.some((known) => error instanceof known);
}
