import type { ClientRoute, Refused } from "./types.ts";

/** Limits of a call's attempts and pauses. */
export interface Patience {
  /** Tries of one call, the first included. */
  readonly triesMax: number;
  /** The longest pause before a further one; a longer Retry-After is returned as the refusal. */
  readonly pauseMsMax: number;
}

export const PATIENCE: Patience = { triesMax: 6, pauseMsMax: 60_000 };

const FIRST_PAUSE_MS = 250;

/** Refusals after which the very same create is to be sent again, besides those that say nothing of what was done. */
const REPLAY: readonly Refused["code"][] = ["REQUEST_IN_PROGRESS", "ORG_NOT_READY", "CREATE_RETRYABLE"];

/** Whether the outcome is unknown: a timeout, a broken connection, a failure of the service. */
export const isAmbiguous = ({ status }: Pick<Refused, "status">): boolean => status === null || status >= 500;

/**
 * Returns the pause before a call is retried; null if it is not. Reads, and creates with an idempotency key, are
 * retried whenever that can help; everything else only after 429, when certainly nothing was done.
 */
export function pauseBefore(
  route: Pick<ClientRoute, "method">,
  hasKey: boolean,
  refused: Pick<Refused, "code" | "status" | "retryAfterSeconds">,
  triesSoFar: number,
  { pauseMsMax, triesMax }: Patience = PATIENCE,
): number | null {
  const again =
    refused.code === "RATE_LIMITED" ||
    (route.method === "GET" && isAmbiguous(refused)) ||
    (hasKey && (isAmbiguous(refused) || REPLAY.includes(refused.code)));
  if (!again || triesSoFar >= triesMax) return null;
  const pauseMs = Math.max(FIRST_PAUSE_MS * 2 ** (triesSoFar - 1), (refused.retryAfterSeconds ?? 0) * 1_000);
  return pauseMs <= pauseMsMax ? pauseMs : null;
}

/** Waits, or until the signal says that the caller no longer waits. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}
