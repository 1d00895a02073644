import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { PlainError } from "../lib/plain-error.ts";

/** Maximum calls per HTTP request to an endpoint that has refused none. */
export const CALLS_PER_REQUEST_MAX = 100;
/** Divisor of a refused size. Large, so that steps are few: each costs a round trip within the timeout of a call. */
const SHRINKS_BY = 4;
/** Time without a refusal before larger batches are tried again. */
const GROWS_AFTER_MS = 3_600_000;
/** Maximum requests in flight for one batch that was split. */
const IN_FLIGHT_MAX = 16;
/** Delays before repeating a request that got HTTP 429, 5xx or no answer; jitter is added. */
const RETRY_DELAYS_MS = [100, 300];

const calls = z.array(z.looseObject({ id: z.number(), method: z.string() })).min(1);
const answer = z.looseObject({ id: z.coerce.number() });
const failure = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) });

type Call = z.infer<typeof calls>[number];

type Exchange =
  /** One answer per call, in order. */
  | { readonly kind: "whole"; readonly answers: readonly unknown[] }
  /** An answer, but not to every call. */
  | { readonly kind: "refused"; readonly cause: string }
  /** No answer, or a temporary failure. */
  | { readonly kind: "failed"; readonly cause: string };

type Post = (body: string) => Promise<Response>;

/** The endpoint has not answered every call of a batch. The message is the endpoint's. */
class NotAnswered extends PlainError {
  override readonly name = "NotAnswered";
}

export interface BatchingFetchOptions {
  /** Called with the endpoint's message when it refuses a batch. */
  readonly onRefused: (calls: number, next: number, cause: string) => void;
  readonly post: typeof fetch;
}

/**
 * `fetch` for batches of JSON-RPC calls. Passes on only complete answers: the client library matches answers to calls
 * by order alone, so one missing answer would make one wallet's balance another's. After an endpoint refuses a batch,
 * smaller ones are sent, in the end single calls. Repeating a call is safe: no call made here has another effect the
 * second time.
 */
export class BatchingFetch {
  readonly #options: BatchingFetchOptions;
  #most = CALLS_PER_REQUEST_MAX;
  #shrunkAt = 0;

  constructor(options: BatchingFetchOptions) {
    this.#options = options;
  }

  /** Current maximum of calls per request. */
  get most(): number {
    if (this.#most < CALLS_PER_REQUEST_MAX && performance.now() - this.#shrunkAt > GROWS_AFTER_MS) {
      this.#most = Math.min(CALLS_PER_REQUEST_MAX, this.#most * SHRINKS_BY);
      this.#shrunkAt = performance.now();
    }
    return this.#most;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const requested = calls.parse(JSON.parse(z.string().parse(init?.body)));
    const answers = await this.#answersTo(requested, (body) => this.#options.post(input, { ...init, body }));
    return Response.json(answers);
  };

  async #answersTo(requested: readonly Call[], post: Post): Promise<readonly unknown[]> {
    const { most } = this;
    if (requested.length > most) return this.#split(requested, most, post);
    const exchange = await exchanged(requested, post);
    if (exchange.kind === "whole") return exchange.answers;
    const [first, ...rest] = requested;
    if (first === undefined || rest.length === 0) throw new NotAnswered(exchange.cause);
    // A single call tells whether the endpoint refuses the batch or answers nothing at all.
    const alone = await exchanged([first], post);
    if (alone.kind !== "whole" || errorIn(alone.answers[0]) === exchange.cause)
      throw new NotAnswered(exchange.cause);
    this.#shrink(requested.length, exchange.cause);
    return [...alone.answers, ...(await this.#answersTo(rest, post))];
  }

  #shrink(refused: number, cause: string): void {
    const next = Math.max(1, Math.floor(refused / SHRINKS_BY));
    this.#shrunkAt = performance.now();
    if (next >= this.#most) return;
    this.#most = next;
    this.#options.onRefused(refused, next, cause);
  }

  /**
   * Sends a batch in chunks. Broadcasts go one request after another: a node may drop a transaction that arrives before
   * the one with the preceding nonce.
   */
  async #split(requested: readonly Call[], size: number, post: Post): Promise<readonly unknown[]> {
    const chunks: Call[][] = [];
    for (let at = 0; at < requested.length; at += size) chunks.push(requested.slice(at, at + size));
    const isOrdered = requested.some(({ method }) => method === "eth_sendRawTransaction");
    const answers: (readonly unknown[])[] = [];
    let next = 0;
    const work = async (): Promise<void> => {
      for (let at = next++; at < chunks.length; at = next++) {
        answers[at] = await this.#answersTo(chunks[at] ?? [], post);
      }
    };
    await Promise.all(Array.from({ length: isOrdered ? 1 : IN_FLIGHT_MAX }, work));
    return answers.flat();
  }
}

/** Performs one request, repeated after a short delay while it fails. */
async function exchanged(requested: readonly Call[], post: Post): Promise<Exchange> {
  for (const delayMs of RETRY_DELAYS_MS) {
    const exchange = await exchangedOnce(requested, post);
    if (exchange.kind !== "failed") return exchange;
    await sleep(delayMs * (1 + Math.random()));
  }
  return exchangedOnce(requested, post);
}

async function exchangedOnce(requested: readonly Call[], post: Post): Promise<Exchange> {
  try {
    // A single call is sent without an array: some endpoints accept no arrays.
    const response = await post(JSON.stringify(requested.length === 1 ? requested[0] : requested));
    const { ok, status } = response;
    const text = await response.text();
    const said = errorIn(parsed(text));
    if (!ok) {
      const cause = `HTTP ${String(status)}: ${said ?? text}`;
      return { kind: status === 429 || status >= 500 ? "failed" : "refused", cause };
    }
    const answers = answersIn(text, requested);
    if (answers !== null) return { kind: "whole", answers };
    return { kind: "refused", cause: said ?? "the answer does not belong to the calls" };
  } catch (error) {
    return { kind: "failed", cause: causeOf(error) };
  }
}

/** Returns the innermost error's text: `fetch` says only that it failed. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return "no answer";
  return error.cause instanceof Error ? causeOf(error.cause) : error.message;
}

/** Returns the answers in a response, in the order of the calls; null if one is missing or belongs to another call. */
function answersIn(text: string, requested: readonly Call[]): readonly unknown[] | null {
  const body = parsed(text);
  const found = z.array(answer).safeParse(requested.length === 1 ? [body].flat() : body);
  if (!found.success || found.data.length !== requested.length) return null;
  const byId = new Map(found.data.map((each) => [each.id, each]));
  const answers = requested.map(({ id }) => byId.get(id));
  return answers.includes(undefined) ? null : answers;
}

/** Returns the message of a JSON-RPC error, even if it is the only element of an array. */
function errorIn(body: unknown): string | null {
  const alone: unknown = Array.isArray(body) && body.length === 1 ? body[0] : body;
  const found = failure.safeParse(alone);
  if (!found.success) return null;
  const { error } = found.data;
  return typeof error === "string" ? error : error.message;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
