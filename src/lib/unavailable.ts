import { WorkflowNotFoundError, WorkflowUpdateFailedError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import { MongoError } from "mongodb";

/** An error that says that something could not be reached, or not in time, or that there was too much to do. */
export interface Unavailable extends Error {
  readonly isUnavailable: true;
}

/** Errors of a socket; MongoDB's driver lets some through as they are when a server dies under it. */
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

/** An actor that is not there any more, by an operator's hand perhaps: nothing was decided, and one may bring it back. */
const isMissing = (error: unknown): boolean =>
  error instanceof WorkflowNotFoundError ||
  (error instanceof WorkflowUpdateFailedError &&
    error.cause instanceof ApplicationFailure &&
    error.cause.type === ENDED_MEANWHILE);

/**
 * Whether it says that MongoDB, Temporal, the chain or the folder for delivery keys could not be reached, or not in time, or that
 * there was too much to do, or that a worker is older than this process: 503, and worth a replay.
 */
export const isUnavailable = (error: unknown): boolean =>
  isMissing(error) ||
  error instanceof MongoError ||
  (error instanceof Error &&
    (("isUnavailable" in error && error.isUnavailable === true) ||
      ("code" in error && SOCKET_CODES.has(error.code))));
