import type { Refusal } from "../domain/errors.ts";
import { refusal } from "../domain/errors.ts";
import type { Counts } from "./counts.ts";

const MINUTE_MS = 60_000;

export interface RateLimitStatus {
  readonly limit: number;
  readonly remaining: number;
  /** End of the minute, in Unix seconds. */
  readonly resetSeconds: number;
  /** Seconds to wait, at least 1. */
  readonly retryAfterSeconds: number;
  readonly exceeded: boolean;
}

/** Limits per minute, in fixed clock minutes. */
export class FixedWindowLimiter {
  readonly #counts: Counts;
  readonly #clock: () => Date;

  constructor(counts: Counts, clock: () => Date) {
    this.#counts = counts;
    this.#clock = clock;
  }

  /** Counts under a name. Of concurrent calls, exactly `limit` per minute are not `exceeded`. */
  async consume(name: string, limit: number, points = 1): Promise<RateLimitStatus> {
    const now = this.#clock();
    return rateLimitStatus(limit, await this.#counts.add(keyOf(name, now), points, limit), now);
  }

  /** Returns the status without counting. */
  async peek(name: string, limit: number): Promise<RateLimitStatus> {
    const now = this.#clock();
    return rateLimitStatus(limit, await this.#counts.read(keyOf(name, now), limit), now);
  }

  /** Returns the status of a caller without any counted requests, without a look-up. */
  unused(limit: number): RateLimitStatus {
    return rateLimitStatus(limit, 0, this.#clock());
  }
}

const minuteOf = (now: Date): number => Math.floor(now.getTime() / MINUTE_MS);

const keyOf = (name: string, now: Date): string => `${String(minuteOf(now))}/${name}`;

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

export const rateLimited = ({ retryAfterSeconds }: RateLimitStatus): Refusal =>
  refusal("RATE_LIMITED", undefined, { retryAfterSeconds });

/** Returns the refusal of the first exceeded limit; null if none is. All end with the same minute. */
export function firstExceeded(standings: readonly RateLimitStatus[]): Refusal | null {
  const exceeded = standings.find((each) => each.exceeded);
  return exceeded === undefined ? null : rateLimited(exceeded);
}
