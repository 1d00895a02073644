import type { Client, WorkflowHandle } from "@temporalio/client";
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
import { openResult } from "../messages/envelope.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";

const DEFECTS = [
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  QueryRejectedError,
] as const;

/** gRPC status code of a malformed message. */
const GRPC_INVALID_ARGUMENT = 3;

/** Timeout of one call to Temporal, so that a client is answered within 5 s whatever is down. */
const CALL_DEADLINE_MS = 4_000;

export interface StartOptions {
  readonly typedSearchAttributes?: TypedSearchAttributes;
  readonly staticSummary: string;
  readonly workflowTaskTimeout?: Duration;
}

export class TemporalCalls {
  readonly client: Client;
  /** Options that let a workflow id start only once. */
  readonly once: { readonly taskQueue: string; readonly workflowIdReusePolicy: "REJECT_DUPLICATE" };

  constructor(client: Client, taskQueue: string) {
    this.client = client;
    this.once = { taskQueue, workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE };
  }

  /** Throws `ActorUnavailable` without a response in time; rethrows errors that waiting does not fix. */
  async bounded<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await this.client.withDeadline(Date.now() + CALL_DEADLINE_MS, call);
    } catch (error) {
      if (isDefect(error)) throw error;
      throw new ActorUnavailable("the actor did not respond in time", { cause: error });
    }
  }

  /** Queries a workflow. */
  query<T>(handle: WorkflowHandle, name: string, ...args: unknown[]): Promise<T> {
    return this.bounded(() => queried<T>(handle, name, ...args));
  }

  /** Starts a workflow. Idempotent by the workflow id. */
  async startOnce(type: string, workflowId: string, args: unknown[], options: StartOptions): Promise<void> {
    await this.ignoringStarted(() =>
      this.client.workflow.start(type, { ...this.once, ...options, workflowId, args }),
    );
  }

  /** Runs a start, ignoring that the workflow has already been started or has ended. */
  async ignoringStarted(call: () => Promise<unknown>): Promise<void> {
    try {
      await this.bounded(call);
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }

  /** Returns a workflow's result; null if it takes longer than `withinMs` or fails. */
  async resultWithin<T>(workflowId: string, withinMs: number): Promise<T | null> {
    const handle = this.client.workflow.getHandle<() => Promise<T>>(workflowId);
    try {
      const opened = openResult(await this.client.withDeadline(Date.now() + withinMs, () => handle.result()));
      return opened.ok ? opened.value : null;
    } catch {
      return null;
    }
  }
}

/**
 * Queries a workflow, once more if its worker failed the query, since one that arrives between two tasks is failed.
 * Throws `ActorUnavailable` if the answer is not this service's.
 */
export async function queried<T>(handle: WorkflowHandle, name: string, ...args: unknown[]): Promise<T> {
  const ask = () => handle.query<T, unknown[]>(name, ...args);
  const answer = await ask().catch((error: unknown) => {
    if (error instanceof QueryNotRegisteredError) return ask();
    throw error;
  });
  const opened = openResult(answer);
  if (opened.ok) return opened.value;
  throw new ActorUnavailable(`the actor's response is not this service's: ${opened.refused}`);
}

/** Whether waiting does not fix the error: a missing actor, a malformed message, an id in use. */
function isDefect(error: unknown): boolean {
  if (isGrpcServiceError(error)) {
    const code: number = error.code;
    return code === GRPC_INVALID_ARGUMENT;
  }
  return DEFECTS.some((known) => error instanceof known);
}
