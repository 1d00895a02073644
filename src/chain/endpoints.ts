import { z } from "zod";
import type { ChainWatchers } from "./repairs.ts";

/** Timeout of the preferred endpoint while there is another one: leaves that one time within a call. */
const PREFERRED_TIMEOUT_MS = 800;
/** Time before a failed endpoint is preferred again. */
const DOWN_MS = 30_000;
const CHECK_TIMEOUT_MS = 1_500;
/** Blocks by which one endpoint may lag behind the other before that counts as a disagreement. */
const LAG_MAX = 50n;

const answer = z.object({ result: z.unknown() });
const quantity = z.templateLiteral(["0x", z.string()]);
const block = z.object({ hash: z.string() }).nullable();

export interface EndpointsOptions extends ChainWatchers {
  /** The first one is used as long as it answers. */
  readonly urls: readonly [string, ...string[]];
  readonly chainId: number;
  /** Number of confirmations before a transaction counts. */
  readonly confirmations: number;
}

interface Endpoint {
  readonly url: string;
  /** `performance.now()` until which the endpoint is not tried first. */
  downUntil: number;
  /** Whether the endpoint was verified to be on the configured chain. */
  isChecked: boolean;
}

/**
 * The chain's RPC endpoints. One request goes to one endpoint, and to the next one if it does not answer, so all
 * answers of a batch come from one node. An endpoint other than the first is used only after it was verified to be on
 * the configured chain.
 */
export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #endpoints: readonly Endpoint[];
  #used: Endpoint | null = null;
  #disagrees = false;

  constructor(options: EndpointsOptions) {
    this.#options = options;
    this.#endpoints = options.urls.map((url) => ({ url, downUntil: 0, isChecked: url === options.urls[0] }));
  }

  /** `fetch` for a JSON-RPC request's body; ignores the URL. */
  readonly fetch: typeof fetch = async (_input, init) => {
    const inOrder = this.#endpoints.toSorted((one, other) => this.#rank(one) - this.#rank(other));
    let last: Response | null = null;
    let thrown: unknown;
    for (const [at, endpoint] of inOrder.entries()) {
      const isLast = at === inOrder.length - 1;
      if (!(await this.#isUsable(endpoint))) continue;
      try {
        const response = await posted(endpoint.url, init ?? {}, isLast ? null : PREFERRED_TIMEOUT_MS);
        if (response.status === 429 || response.status >= 500) last = response;
        else {
          this.#noteUsed(endpoint);
          return response;
        }
      } catch (error) {
        thrown = error;
        if (init?.signal?.aborted === true) throw error;
      }
      endpoint.downUntil = performance.now() + DOWN_MS;
    }
    if (last === null) throw thrown ?? new TypeError("no endpoint is on the configured chain");
    return last;
  };

  /** Compares the endpoints at the newest block that is final for both; warns once whenever they begin to differ. */
  async compare(): Promise<void> {
    const [first, second] = this.#endpoints;
    if (first === undefined || second === undefined) return;
    const cause = await this.#difference(first, second).catch(() => null);
    // A silent endpoint proves nothing.
    if (cause === null) return;
    const { onRepair, onWarning } = this.#options;
    if (cause !== "" && !this.#disagrees)
      onWarning("the chain's endpoints disagree; payments go on by the one in use", { cause });
    if (cause !== "") onRepair("endpoints_disagree", 1);
    this.#disagrees = cause !== "";
  }

  async #difference(first: Endpoint, second: Endpoint): Promise<string> {
    const { chainId, confirmations } = this.#options;
    const ids = await Promise.all([first, second].map(({ url }) => asked(url, "eth_chainId")));
    if (ids.some((id) => BigInt(quantity.parse(id)) !== BigInt(chainId))) return "another chain's id";
    const heads = await Promise.all([first, second].map(({ url }) => asked(url, "eth_blockNumber")));
    const [one = 0n, other = 0n] = heads.map((head) => BigInt(quantity.parse(head)));
    const [lower, higher] = one < other ? [one, other] : [other, one];
    if (higher - lower > LAG_MAX) return `one is ${String(higher - lower)} blocks behind`;
    const final = lower - BigInt(confirmations - 1);
    if (final < 0n) return "";
    const params = [`0x${final.toString(16)}`, false];
    const blocks = await Promise.all(
      [first, second].map(({ url }) => asked(url, "eth_getBlockByNumber", params)),
    );
    const [mine, theirs] = blocks.map((found) => block.parse(found)?.hash ?? null);
    return mine === theirs ? "" : `two blocks ${String(final)}`;
  }

  /** Orders endpoints: those that are not down first, otherwise as configured. */
  #rank({ downUntil }: Endpoint): number {
    return performance.now() < downUntil ? 1 : 0;
  }

  async #isUsable(endpoint: Endpoint): Promise<boolean> {
    if (endpoint.isChecked) return true;
    const id = await asked(endpoint.url, "eth_chainId").catch(() => null);
    const parsed = quantity.safeParse(id);
    endpoint.isChecked = parsed.success && BigInt(parsed.data) === BigInt(this.#options.chainId);
    if (parsed.success && !endpoint.isChecked)
      this.#options.onWarning("the chain's second endpoint is on another chain and is not used", {
        found: parsed.data,
      });
    return endpoint.isChecked;
  }

  #noteUsed(endpoint: Endpoint): void {
    const before = this.#used;
    this.#used = endpoint;
    if (before === endpoint || (before === null && endpoint === this.#endpoints[0])) return;
    const now = endpoint === this.#endpoints[0] ? "the first" : "the second";
    this.#options.onWarning("the chain is now reached through another endpoint", { now });
    this.#options.onRepair("endpoint_changed", 1);
  }
}

/** Posts a request and reads the whole answer: an endpoint that stops midway has not answered. */
async function posted(url: string, init: RequestInit, withinMs: number | null): Promise<Response> {
  const signals = [init.signal ?? null, withinMs === null ? null : AbortSignal.timeout(withinMs)];
  const signal = AbortSignal.any(signals.filter((each) => each !== null));
  const response = await fetch(url, { ...init, signal });
  const { headers, status } = response;
  return new Response(await response.text(), {
    status,
    headers: { "content-type": headers.get("content-type") ?? "" },
  });
}

async function asked(url: string, method: string, params: readonly unknown[] = []): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    signal: AbortSignal.timeout(CHECK_TIMEOUT_MS),
  });
  return answer.parse(await response.json()).result;
}
