import { WorkflowNotFoundError, WorkflowUpdateFailedError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import { MongoError } from "mongodb";

/** An error that says that something could not be reached in time, or that there was too much to do. */
export interface Unavailable extends Error {
  readonly isUnavailable: true;
}

/** Socket errors; MongoDB's driver passes some on unchanged when a server dies. */
const SOCKET_CODES: ReadonlySet<unknown> = new Set([
  "EPIPE",
  "ECONNRESET",
  "ECONNREFUSED",
  "ECONNABORTED",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
]);

/** Temporal's failure for a workflow that ended between an update's arrival and its answer. */
const ENDED_MEANWHILE = "AcceptedUpdateCompletedWorkflow";

/** Whether the actor is gone, perhaps ended by an operator: nothing was decided, and it may be restored. */
const isMissing = (error: unknown): boolean =>
  error instanceof WorkflowNotFoundError ||
  (error instanceof WorkflowUpdateFailedError &&
    error.cause instanceof ApplicationFailure &&
    error.cause.type === ENDED_MEANWHILE);

/**
 * Whether an error says that MongoDB, Temporal, the chain or the folder of delivery keys could not be reached in time,
 * that there was too much to do, or that a worker is older than this process: answered 503, and worth a retry.
 */
export const isUnavailable = (error: unknown): boolean =>
  isMissing(error) ||
  error instanceof MongoError ||
  (error instanceof Error &&
    (("isUnavailable" in error && error.isUnavailable === true) ||
      ("code" in error && SOCKET_CODES.has(error.code))));
