import { setTimeout as sleep } from "node:timers/promises";
import { defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from "@temporalio/client";

/** Tolerance for a retry that fires late on a busy machine. */
const LATE_TOLERANCE_MS = 100;

/** gRPC status of a server that currently accepts no more. */
const RESOURCE_EXHAUSTED = 8;

/** Temporal's error for an update that meets a continue-as-new. A retry after milliseconds succeeds. */
const ROLLING_OVER = /workflow is closing/i;
const ROLLING_OVER_RETRY_MS = 5;
/** More than fit into the deadline of a call to the engine, which ends the retries. */
const SHORT_RETRIES_MAX = 1_000;

/** Temporal's refusal of an update above a workflow's maximum in flight (10 by default), over within milliseconds. */
const TOO_MANY_IN_FLIGHT = /concurrent in-flight updates/i;
/** Range of the first jitter, which spreads servers that were refused together. It grows up to 8 times. */
const IN_FLIGHT_RETRY_MIN_MS = 3;
const IN_FLIGHT_RETRY_MAX_MS = 25;
const IN_FLIGHT_DOUBLINGS_MAX = 3;

interface Status {
  readonly code: number;
  readonly details: string;
}

/** Delay before retrying a refusal that lasts only milliseconds; null to apply the client's own backoff. */
function shortDelayMs({ code, details }: Status, attempt: number): number | null {
  if (code !== RESOURCE_EXHAUSTED) return null;
  if (ROLLING_OVER.test(details)) return ROLLING_OVER_RETRY_MS;
  if (!TOO_MANY_IN_FLIGHT.test(details)) return null;
  const jitterMs = Math.random() * (IN_FLIGHT_RETRY_MAX_MS - IN_FLIGHT_RETRY_MIN_MS);
  return IN_FLIGHT_RETRY_MIN_MS + jitterMs * 2 ** Math.min(attempt - 1, IN_FLIGHT_DOUBLINGS_MAX);
}

/**
 * The Temporal client's own retries, and a way to end them: a retry that falls due on a closed connection throws past
 * every caller and ends the process. So before closing, no further retry is begun and the waiting ones have run.
 */
export class GrpcRetries {
  #ending = false;
  #lastDueAt = 0;

  get interceptor(): ReturnType<typeof makeGrpcRetryInterceptor> {
    const { delayFunction, retryableDecider } = defaultGrpcRetryOptions();
    return makeGrpcRetryInterceptor({
      retryableDecider: (attempt, status) =>
        !this.#ending &&
        (shortDelayMs(status, attempt) === null
          ? retryableDecider(attempt, status)
          : attempt < SHORT_RETRIES_MAX),
      delayFunction: (attempt, status) => {
        const delayMs = shortDelayMs(status, attempt) ?? delayFunction(attempt, status);
        this.#lastDueAt = Math.max(this.#lastDueAt, performance.now() + delayMs);
        return delayMs;
      },
    });
  }

  /** Resolves when no retry will run any more; at once if none is waiting. */
  async end(): Promise<void> {
    this.#ending = true;
    const leftMs = this.#lastDueAt + LATE_TOLERANCE_MS - performance.now();
    if (leftMs > 0) await sleep(leftMs);
  }
}
