import type { ErrorCode } from "../domain/errors.ts";

/** What every create of an agent, a project or a team can answer besides what any operation can. */
export const CREATE_ERRORS: readonly ErrorCode[] = [
  "NOT_FOUND",
  "IDEMPOTENCY_KEY_REQUIRED",
  "ORG_NOT_READY",
  "CONTAINER_ARCHIVED",
  "IDEMPOTENCY_KEY_REUSED",
  "DAILY_CREATE_LIMIT_REACHED",
  "CREATE_RETRYABLE",
];
