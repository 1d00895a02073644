import { LRUCache } from "lru-cache";
import type { Db } from "mongodb";
import { RateLimiterMongo, RateLimiterRes } from "rate-limiter-flexible";
import { withTimeout } from "../lib/with-timeout.ts";
import { isUnavailable } from "../lib/unavailable.ts";
import { type Counts, COUNT_RETENTION_SECONDS } from "./counts.ts";
import { MemoryCounts } from "./memory-counts.ts";

const COLLECTION = "rate_limits";

/** Timeout of one count, out of a caller's 5 s. */
const COUNT_TIMEOUT_MS = 500;

/** Maximum cached limiters, one per distinct limit. */
const LIMITERS_MAX = 1_000;

/** Time without calls to MongoDB after a count timed out. */
const AWAY_MS = 2_000;

/**
 * Counts shared by several server processes. Callers over a limit are remembered in memory until the count expires, so
 * that the most frequent ones cost the database nothing. While MongoDB is unavailable each process counts for itself:
 * no limit is ever lifted.
 */
export class MongoCounts implements Counts {
  readonly #db: Db;
  /**
   * Recently used limiters, one per limit, since the library fixes the count at which it stops querying per limiter,
   * and organizations may have their own limits. A new limiter queries MongoDB.
   */
  readonly #limiters = new LRUCache<number, RateLimiterMongo>({ max: LIMITERS_MAX });
  readonly #whileAway = new MemoryCounts();
  #awayUntil = 0;

  readonly #countMs: number;

  private constructor(db: Db, countMs: number) {
    this.#countMs = countMs;
    // A failover may lose a count, which lets a few more requests pass; waiting for the journal would delay every
    // request.
    this.#db = db.client.db(db.databaseName, { writeConcern: { w: 1, journal: false } });
  }

  /** `countMs` is the timeout after which this process counts for itself. */
  static async on(db: Db, countMs = COUNT_TIMEOUT_MS): Promise<MongoCounts> {
    const counts = new MongoCounts(db, countMs);
    await counts.#limiterOf(1).createIndexes();
    return counts;
  }

  add(key: string, points: number, limit: number): Promise<number> {
    return this.#orAway(
      () => this.#consume(key, points, limit),
      () => this.#whileAway.add(key, points),
    );
  }

  read(key: string, limit: number): Promise<number> {
    return this.#orAway(
      async () => (await this.#limiterOf(limit).get(key))?.consumedPoints ?? 0,
      () => this.#whileAway.read(key),
    );
  }

  async #consume(key: string, points: number, limit: number): Promise<number> {
    try {
      const { consumedPoints } = await this.#limiterOf(limit).consume(key, points);
      return consumedPoints;
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      // A key blocked in memory is not counted further.
      return Math.max(refused.consumedPoints, limit + 1);
    }
  }

  async #orAway(count: () => Promise<number>, countHere: () => Promise<number>): Promise<number> {
    if (performance.now() < this.#awayUntil) return countHere();
    try {
      return await withTimeout(this.#countMs, count());
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      this.#awayUntil = performance.now() + AWAY_MS;
      return countHere();
    }
  }

  #limiterOf(limit: number): RateLimiterMongo {
    const known = this.#limiters.get(limit);
    if (known !== undefined) return known;
    const limiter = new RateLimiterMongo({
      storeClient: this.#db,
      tableName: COLLECTION,
      keyPrefix: "",
      points: limit,
      duration: COUNT_RETENTION_SECONDS,
      inMemoryBlockOnConsumed: limit,
      disableIndexesCreation: true,
    });
    this.#limiters.set(limit, limiter);
    return limiter;
  }
}
