/** Pauses before the second, third, … attempt of a delivery, unless configured otherwise. */
export const BACKOFF_SECONDS: readonly number[] = [300, 1_800, 7_200, 28_800];

/** Number of consecutive failed deliveries after which an endpoint is disabled. */
export const DISABLE_AFTER_FAILURES = 10;

/** Whether an attempt was acknowledged, by any 2xx status and nothing else. */
export const isAcknowledged = (httpStatus: number | null): boolean =>
  httpStatus !== null && httpStatus >= 200 && httpStatus <= 299;

/** Returns the pause before the next attempt; null if there is none. */
export const pauseAfter = (failedAttempts: number, backoffSeconds: readonly number[]): number | null =>
  backoffSeconds[failedAttempts - 1] ?? null;
