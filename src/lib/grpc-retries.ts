import { setTimeout as sleep } from "node:timers/promises";
import { defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from "@temporalio/client";

/** A retry that is due fires a little late on a busy machine. */
const LATE_MS = 100;

/** gRPC's number for a server that takes no more just now. */
const RESOURCE_EXHAUSTED = 8;

/** Temporal's error for an update that meets a continue-as-new. A retry after milliseconds succeeds. */
const ROLLING_OVER = /workflow is closing/i;
const ROLLING_OVER_RETRY_MS = 5;
/** Together as long as a call to the engine may take. */
const ROLLING_OVER_RETRIES_MAX = 800;

interface Status {
  readonly code: number;
  readonly details: string;
}

const isRollingOver = ({ code, details }: Status): boolean =>
  code === RESOURCE_EXHAUSTED && ROLLING_OVER.test(details);

/**
 * The Temporal client's own retries, and a way to end them: a retry that falls due on a closed connection throws past
 * every caller and ends the process. So no further one is begun, and those that wait are over, before it is closed.
 */
export class GrpcRetries {
  #ending = false;
  #lastDueAt = 0;

  get interceptor(): ReturnType<typeof makeGrpcRetryInterceptor> {
    const { delayFunction, retryableDecider } = defaultGrpcRetryOptions();
    return makeGrpcRetryInterceptor({
      retryableDecider: (attempt, status) =>
        !this.#ending &&
        (isRollingOver(status) ? attempt < ROLLING_OVER_RETRIES_MAX : retryableDecider(attempt, status)),
      delayFunction: (attempt, status) => {
        const delayMs = isRollingOver(status) ? ROLLING_OVER_RETRY_MS : delayFunction(attempt, status);
        this.#lastDueAt = Math.max(this.#lastDueAt, performance.now() + delayMs);
        return delayMs;
      },
    });
  }

  /** Resolves when nothing will be retried any more; at once unless something waits to be. */
  async end(): Promise<void> {
    this.#ending = true;
    const leftMs = this.#lastDueAt + LATE_MS - performance.now();
    if (leftMs > 0) await sleep(leftMs);
  }
}
