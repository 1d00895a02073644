import { RateLimiterMemory } from "rate-limiter-flexible";
import { type Counts, COUNT_RETENTION_SECONDS } from "./counts.ts";

/** Counts of a single-process service. Bounded by the callers within `COUNT_RETENTION_SECONDS`. */
export class MemoryCounts implements Counts {
  readonly #limiter: RateLimiterMemory;

  constructor() {
    // The library's own limit is not used: one limiter counts for all limits.
    this.#limiter = new RateLimiterMemory({ keyPrefix: "", points: 1, duration: COUNT_RETENTION_SECONDS });
  }

  async add(key: string, points: number): Promise<number> {
    const { consumedPoints } = await this.#limiter.penalty(key, points);
    return consumedPoints;
  }

  async read(key: string): Promise<number> {
    return (await this.#limiter.get(key))?.consumedPoints ?? 0;
  }

  get size(): number {
    return this.#limiter.dump().storage.length;
  }
}
