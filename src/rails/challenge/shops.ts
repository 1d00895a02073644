import { type FetchOutcome, GuardedFetch } from "../../lib/guarded-fetch/guarded-fetch.ts";
import { Gate } from "../../lib/gate.ts";

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

/** Maximum exchanges in flight per process, organization and agent: each holds a connection and up to 256 KiB. */
const EXCHANGES_MAX = 128;
const OF_ORGANIZATION_MAX = 64;
const OF_AGENT_MAX = 16;

export interface Shopper {
  readonly organizationId: string;
  readonly agentId: string;
}

/** Fetches from shops on the web, within limits that keep slow or endless shops from harming other callers. */
export class Shops {
  readonly #guard: GuardedFetch;
  readonly #gate = new Gate(EXCHANGES_MAX);

  constructor(allowCidrs: readonly string[]) {
    this.#guard = new GuardedFetch({ allowCidrs, extraCa: null, allowsHttp: true });
  }

  /** Sends a request without following redirects. Null if too many exchanges are in flight. */
  async fetch({ agentId, organizationId }: Shopper, request: ShopRequest): Promise<FetchOutcome | null> {
    const permit = this.#gate.enter(
      { name: agentId, max: OF_AGENT_MAX },
      { name: organizationId, max: OF_ORGANIZATION_MAX },
    );
    if (permit === null) return null;
    const bounds = { bodyMaxBytes: SHOP_BODY_MAX_BYTES, headersMaxBytes: SHOP_HEADERS_MAX_BYTES };
    try {
      return await this.#guard.fetch({ ...request, timeoutMs: SHOP_TIMEOUT_MS }, bounds);
    } finally {
      permit.release();
    }
  }

  /** Aborts the exchanges in flight. */
  close(): void {
    this.#guard.close();
  }
}
