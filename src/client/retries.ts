import type { ClientRoute, Refused } from "./types.ts";

export interface Patience {
  /** Maximum attempts of one call, including the first. */
  readonly triesMax: number;
  /** Longest pause before a retry; a longer Retry-After is returned as the refusal. */
  readonly pauseMsMax: number;
}

export const PATIENCE: Patience = { triesMax: 6, pauseMsMax: 60_000 };

const FIRST_PAUSE_MS = 250;

/** Refusals after which the same create is retried, in addition to those that leave the outcome unknown. */
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

/** Waits for `ms`, or until the signal is aborted. */
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
