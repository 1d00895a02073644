import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import type { FetchOutcome, GuardedFetch } from "../../lib/guarded-fetch/guarded-fetch.ts";
import { type IssuerRefusal, type IssuerResult, IssuerUnreachable } from "../../payments/card-issuer.ts";
import { errorObject, jsonOf, pageOf } from "./objects.ts";

/** API version, which determines the shapes of objects and events: the newest described by stripe-mock v0.203.0. */
export const STRIPE_VERSION = "2026-08-26.dahlia";

/** Timeout of a call including all its attempts, and of one attempt. */
const CALL_TIMEOUT_MS = 12_000;
const ATTEMPT_TIMEOUT_MS = 8_000;
const ATTEMPTS_MAX = 3;
const BACKOFF_MS = 250;
/** A page of 100 authorizations with their cards and transactions takes up to 1 MiB. */
const BODY_MAX_BYTES = 8 * 1_024 * 1_024;
const HEADERS_MAX_BYTES = 32 * 1_024;
const PAGE_SIZE = 100;

export interface Params {
  readonly [name: string]: Param;
}
type Param = string | number | boolean | undefined | Params | readonly (string | Params)[];

export interface StripeCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Path after `/v1/`. */
  readonly path: string;
  readonly params?: Params;
  /** Without a key, a call is retried only within itself. */
  readonly idempotencyKey?: string;
}

export interface StripeClientOptions {
  readonly apiKey: string;
  readonly baseUrl: string;
  readonly fetch: Pick<GuardedFetch, "fetch">;
}

/** Stripe's API over HTTP: forms in, JSON out. The key is sent only in one header. */
export class StripeClient {
  readonly #options: StripeClientOptions;

  constructor(options: StripeClientOptions) {
    this.#options = options;
  }

  /** Makes a call, retried with one idempotency key until the answer is usable, or throws `IssuerUnreachable`. */
  async call<T extends z.ZodType>(call: StripeCall, answer: T): Promise<IssuerResult<z.output<T>>> {
    const until = performance.now() + CALL_TIMEOUT_MS;
    const idempotencyKey = call.idempotencyKey ?? randomUUID();
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#attempt({ ...call, idempotencyKey }, until - performance.now());
      const result = resultOf(outcome, answer);
      if (typeof result !== "string") return result;
      const pauseMs = BACKOFF_MS * 2 ** (attempt - 1) + randomInt(BACKOFF_MS);
      if (attempt >= ATTEMPTS_MAX || performance.now() + pauseMs >= until)
        throw new IssuerUnreachable(`${call.method} ${call.path}: ${result}`);
      await sleep(pauseMs);
    }
  }

  /** Like `call`, but throws on a refusal too, for reads that nobody can be told about. */
  async read<T extends z.ZodType>(path: string, params: Params, answer: T): Promise<z.output<T>> {
    const result = await this.call({ method: "GET", path, params }, answer);
    if (result.ok) return result.value;
    throw new IssuerUnreachable(`GET ${path}: ${result.refusal.reason}`);
  }

  /** Yields all objects of a list, newest first. */
  async *list<T extends z.ZodType<{ readonly id: string }>>(
    path: string,
    params: Params,
    item: T,
  ): AsyncGenerator<z.output<T>> {
    let after: string | undefined;
    for (;;) {
      const paging = { limit: PAGE_SIZE, starting_after: after };
      const page = await this.read(path, { ...params, ...paging }, pageOf(item));
      yield* page.data;
      after = page.data.at(-1)?.id;
      if (!page.has_more || after === undefined) return;
    }
  }

  #attempt({ idempotencyKey, method, params = {}, path }: StripeCall, leftMs: number): Promise<FetchOutcome> {
    const { apiKey, baseUrl, fetch } = this.#options;
    const form = formOf(params);
    const inQuery = method !== "POST" && form !== "";
    return fetch.fetch(
      {
        url: `${baseUrl}/v1/${path}${inQuery ? `?${form}` : ""}`,
        method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          "stripe-version": STRIPE_VERSION,
          ...(method === "POST"
            ? {
                "content-type": "application/x-www-form-urlencoded",
                "idempotency-key": idempotencyKey ?? "",
              }
            : {}),
        },
        body: method === "POST" ? form : null,
        timeoutMs: Math.max(1, Math.min(ATTEMPT_TIMEOUT_MS, leftMs)),
      },
      { bodyMaxBytes: BODY_MAX_BYTES, headersMaxBytes: HEADERS_MAX_BYTES },
    );
  }
}

/** Returns the result, or a text that says why there is no usable answer. */
function resultOf<T extends z.ZodType>(outcome: FetchOutcome, answer: T): IssuerResult<z.output<T>> | string {
  if (outcome.kind === "failed") return outcome.reason;
  const { body, httpStatus, isCut } = outcome;
  const json = isCut ? null : jsonOf(body);
  if (httpStatus >= 200 && httpStatus < 300) {
    const parsed = answer.safeParse(json);
    return parsed.success ? { ok: true, value: parsed.data } : "its answer is not what was expected";
  }
  // 409: another request with the same key is in flight.
  const isRefused = httpStatus >= 400 && httpStatus < 500 && ![408, 409, 429].includes(httpStatus);
  return isRefused ? { ok: false, refusal: refusalIn(httpStatus, json) } : `it answered ${httpStatus}`;
}

const FUNDS_CODES: ReadonlySet<string> = new Set(["balance_insufficient", "insufficient_funds"]);

function refusalIn(httpStatus: number, json: unknown): IssuerRefusal {
  const { data } = errorObject.safeParse(json);
  const message = (data?.error.message ?? "").replaceAll(SECRETS, "…").slice(0, REASON_CHARACTERS_MAX);
  const reason = message === "" ? `Stripe answered ${httpStatus}.` : message;
  if (httpStatus === 401 || httpStatus === 403) return { code: "KEY_REFUSED", reason };
  return { code: FUNDS_CODES.has(data?.error.code ?? "") ? "INSUFFICIENT_FUNDS" : "REFUSED", reason };
}

const REASON_CHARACTERS_MAX = 500;
/** Keys and secrets, whole or shortened as in Stripe's messages, and card numbers. */
const SECRETS = /\b(?:sk|rk|pk|ek|whsec)_[\w*]+|\b\d{12,19}\b/g;

/** Encodes nested fields as Stripe's forms do: `a[b]=1&c[0][d]=2`. */
export function formOf(params: Params): string {
  const pairs: string[] = [];
  const add = (name: string, value: Param): void => {
    if (value === undefined) return;
    if (typeof value !== "object") pairs.push(`${encodedName(name)}=${encodeURIComponent(String(value))}`);
    else for (const [key, field] of Object.entries(value)) add(`${name}[${key}]`, field);
  };
  for (const [name, value] of Object.entries(params)) add(name, value);
  return pairs.join("&");
}

const encodedName = (name: string): string =>
  encodeURIComponent(name).replaceAll("%5B", "[").replaceAll("%5D", "]");
