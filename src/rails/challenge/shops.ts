import { type FetchOutcome, GuardedFetch, type GuardOptions } from "../../lib/guarded-fetch/guarded-fetch.ts";
import { BoundedWork, TooMuchWork } from "../../lib/bounded-work.ts";
import { Gate, type Share } from "../../lib/gate.ts";
import { RetryTurns } from "../../lib/retry-turns.ts";

export interface ShopRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Timeout of one exchange with a shop, and the maximum size of an answer's body. */
export const SHOP_TIMEOUT_MS = 10_000;
export const SHOP_BODY_MAX_BYTES = 256 * 1_024;
/** Room for a challenge of 16 KiB and other headers. */
const SHOP_HEADERS_MAX_BYTES = 32 * 1_024;

/** Maximum wait of an exchange for its turn. */
export const TURN_TIMEOUT_MS = 3_000;
/**
 * Maximum exchanges in flight per process and agent: each holds a connection and up to 256 KiB. The next ones wait, so
 * that a burst of one agent is served.
 */
const EXCHANGES = {
  atOnceMax: 128,
  waitingMax: 128,
  waitMs: TURN_TIMEOUT_MS,
  share: { atOnceMax: 16, waitingMax: 16 },
};
/** Maximum exchanges of an organization, in flight or waiting. */
const OF_ORGANIZATION_MAX = 64;
/**
 * Retries of an organization's refused requests: the first once the exchanges in flight have ended, then one for each
 * that ends. Clients do not wait longer than a minute.
 */
const RETRIES = {
  firstMs: SHOP_TIMEOUT_MS,
  lastMs: 60_000,
  stepMs: SHOP_TIMEOUT_MS / OF_ORGANIZATION_MAX,
};
const shareOf = (organizationId: string): Share => ({ name: organizationId, max: OF_ORGANIZATION_MAX });

export interface Shopper {
  readonly organizationId: string;
  readonly agentId: string;
}

/** Fetches from shops on the web, within limits that keep slow or endless shops from harming other callers. */
export class Shops {
  readonly #guard: GuardedFetch;
  readonly #exchanges = new BoundedWork(EXCHANGES);
  readonly #organizations = new Gate(Infinity);
  readonly #retries = new RetryTurns(RETRIES);

  constructor(reach: Pick<GuardOptions, "allowCidrs" | "resolve">) {
    this.#guard = new GuardedFetch({ ...reach, extraCa: null, allowsHttp: true });
  }

  /** Whether a request of the organization would be refused now. */
  isBusy(organizationId: string): boolean {
    return this.#organizations.isFull(shareOf(organizationId));
  }

  /** Returns the time after which a refused request of the organization is to be repeated. */
  retryAfterSeconds(organizationId: string): number {
    return this.#retries.nextSeconds(organizationId);
  }

  /** Sends a request without following redirects. Null if too many exchanges are in flight. */
  async fetch({ agentId, organizationId }: Shopper, request: ShopRequest): Promise<FetchOutcome | null> {
    const permit = this.#organizations.enter(shareOf(organizationId));
    if (permit === null) return null;
    const bounds = { bodyMaxBytes: SHOP_BODY_MAX_BYTES, headersMaxBytes: SHOP_HEADERS_MAX_BYTES };
    const timed = { ...request, timeoutMs: SHOP_TIMEOUT_MS };
    try {
      return await this.#exchanges.run(() => this.#guard.fetch(timed, bounds), agentId);
    } catch (error) {
      if (error instanceof TooMuchWork) return null;
      throw error;
    } finally {
      permit.release();
    }
  }

  /** Aborts the exchanges in flight. */
  close(): void {
    this.#guard.close();
  }
}
