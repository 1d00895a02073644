import type { Refusal } from "../domain/errors.ts";
import { refusal } from "../domain/errors.ts";
import type { Counts } from "./counts.ts";

const MINUTE_MS = 60_000;

/** The status of a caller against a limit in the current minute. */
export interface RateLimitStatus {
  readonly limit: number;
  readonly remaining: number;
  /** End of the minute, in Unix seconds. */
  readonly resetSeconds: number;
  /** Seconds to wait, at least 1. */
  readonly retryAfterSeconds: number;
  readonly exceeded: boolean;
}

/** Limits per minute, in fixed minutes of the clock. */
export class FixedWindowLimiter {
  readonly #counts: Counts;
  readonly #clock: () => Date;

  constructor(counts: Counts, clock: () => Date) {
    this.#counts = counts;
    this.#clock = clock;
  }

  /** Counts under a name. Of any number at once, exactly the limit's number is not `exceeded` in one minute. */
  async consume(name: string, limit: number, points = 1): Promise<RateLimitStatus> {
    const now = this.#clock();
    return rateLimitStatus(limit, await this.#counts.add(keyOf(name, now), points, limit), now);
  }

  /** Returns the status without counting. */
  async peek(name: string, limit: number): Promise<RateLimitStatus> {
    const now = this.#clock();
    return rateLimitStatus(limit, await this.#counts.read(keyOf(name, now), limit), now);
  }

  /** The status of a caller of whom nothing is counted yet, without a look-up. */
  unused(limit: number): RateLimitStatus {
    return rateLimitStatus(limit, 0, this.#clock());
  }
}

const minuteOf = (now: Date): number => Math.floor(now.getTime() / MINUTE_MS);

const keyOf = (name: string, now: Date): string => `${String(minuteOf(now))}/${name}`;

/** The status of `count` requests against a limit. */
export function rateLimitStatus(limit: number, count: number, now: Date): RateLimitStatus {
  const resetMs = (minuteOf(now) + 1) * MINUTE_MS;
  return {
    limit,
    remaining: Math.max(0, limit - count),
    resetSeconds: resetMs / 1_000,
    retryAfterSeconds: Math.max(1, Math.ceil((resetMs - now.getTime()) / 1_000)),
    exceeded: count > limit,
  };
}

/** Refusal for a caller over a limit. */
export const rateLimited = ({ retryAfterSeconds }: RateLimitStatus): Refusal =>
  refusal("RATE_LIMITED", undefined, { retryAfterSeconds });

/** The refusal of the first of them that is exceeded; null when none is. All end with the same minute. */
export function firstExceeded(standings: readonly RateLimitStatus[]): Refusal | null {
  const exceeded = standings.find((each) => each.exceeded);
  return exceeded === undefined ? null : rateLimited(exceeded);
}
