import type { ErrorCode } from "../domain/errors.ts";

/** What every create of an agent, a project or a team can answer besides what any operation can. */
export const CREATE_ERRORS: readonly ErrorCode[] = [
  "IDEMPOTENCY_KEY_REQUIRED",
  "ORG_NOT_READY",
  "REQUEST_IN_PROGRESS",
  "IDEMPOTENCY_KEY_REUSED",
  "DAILY_CREATE_LIMIT_REACHED",
  "CREATE_RETRYABLE",
];

/** The same for what is created inside of something. */
export const CREATE_INSIDE_ERRORS: readonly ErrorCode[] = [
  "NOT_FOUND",
  "CONTAINER_ARCHIVED",
  ...CREATE_ERRORS,
];
