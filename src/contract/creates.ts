import type { ErrorCode } from "../domain/errors.ts";

/** Errors of every create, in addition to those of any operation. */
export const CREATE_ERRORS: readonly ErrorCode[] = [
  "IDEMPOTENCY_KEY_REQUIRED",
  "ORG_NOT_READY",
  "REQUEST_IN_PROGRESS",
  "IDEMPOTENCY_KEY_REUSED",
  "DAILY_CREATE_LIMIT_REACHED",
  "CREATE_RETRYABLE",
];

export const CREATE_INSIDE_ERRORS: readonly ErrorCode[] = [
  "NOT_FOUND",
  "CONTAINER_ARCHIVED",
  ...CREATE_ERRORS,
];
