import { answerOf, noAnswer } from "./answers.ts";
import { PATIENCE, type Patience, pause, pauseBefore } from "./retries.ts";
import { ROUTES } from "./routes.ts";
import type {
  Answer,
  CallOptions,
  Calls,
  ClientRoute,
  FileId,
  Input,
  Item,
  ListId,
  Refused,
} from "./types.ts";
import { newUuid } from "./uuid.ts";

/** Credential of the client: a key or token sent along, or a browser's session in cookies that no script can read. */
export type Credential =
  | { readonly type: "none" }
  | { readonly type: "bearer"; readonly token: string | (() => string) }
  | { readonly type: "cookies" };

export interface ClientOptions {
  /** Address before `/v1`; empty on the service's own pages. */
  readonly baseUrl: string;
  readonly credential?: Credential;
  /** Timeout of one attempt; 60 s by default. */
  readonly timeoutMs?: number;
  readonly patience?: Patience;
  readonly fetch?: typeof fetch;
  /** Returns a new idempotency key for a create without one. */
  readonly newKey?: () => string;
}

/** All operations of the service, and iteration over the records of its lists. */
export interface Client extends Calls {
  /** Iterates over a list's records, loading pages on demand. Throws `RefusedError` if a page is refused. */
  each<Id extends ListId>(
    id: Id,
    input?: Input<Id>,
    options?: CallOptions,
  ): AsyncGenerator<Item<Id>, void, undefined>;
}

/** A refusal, for callers that can only be told by a throw. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  readonly refused: Refused;

  constructor(refused: Refused) {
    super(refused.message);
    this.refused = refused;
  }
}

/** Returns a success's value; throws `RefusedError` for a refusal. */
export function valueOf<T>(answer: Answer<T>): T {
  if (answer.ok) return answer.value;
  throw new RefusedError(answer.refused);
}

type Plain = string | number | boolean | null | undefined;

interface AnyInput {
  readonly query?: Readonly<Record<string, Plain>> | undefined;
  readonly body?: unknown;
  /** Ids of the path. */
  readonly [id: string]: unknown;
}

/**
 * Creates a client of the service, derived from its contract. Retries only what may be repeated: reads, and creates by
 * their idempotency key, which it generates if missing.
 */
export function createClient(options: ClientOptions): Client {
  const caller = new Caller(options);
  const ids = Object.keys(ROUTES);
  const calls = Object.fromEntries(
    ids.map((id) => [
      id,
      (input: AnyInput = {}, given: CallOptions = {}) => caller.call(routeOf(id), input, given),
    ]),
  );
  const each = (id: string, input: AnyInput = {}, given: CallOptions = {}) =>
    records(caller, routeOf(id), input, given);
  // The types are derived from the contract, against which the routes are tested.
  return Object.assign(calls, { each }) as unknown as Client;
}

function routeOf(id: string): ClientRoute {
  const routes: Readonly<Record<string, ClientRoute>> = ROUTES;
  const route = routes[id];
  if (route === undefined) throw new Error(`${id} is no operation`);
  return route;
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

async function* records(
  caller: Caller,
  route: ClientRoute,
  input: AnyInput,
  options: CallOptions,
): AsyncGenerator<unknown, void, undefined> {
  let cursor: string | null = null;
  do {
    const query = { ...input.query, ...(cursor === null ? {} : { cursor }) };
    const page: Readonly<Record<string, unknown>> = {
      ...Object(valueOf(await caller.call(route, { ...input, query }, options))),
    };
    const found = page[route.list ?? ""];
    if (isList(found)) yield* found;
    const { nextCursor } = page;
    cursor = typeof nextCursor === "string" ? nextCursor : null;
  } while (cursor !== null);
}

class Caller {
  readonly #options: ClientOptions;
  readonly #credential: Credential;
  /** The last refresh of the session. Calls that find it over take turns, so that one refreshes it for all. */
  #refreshing: Promise<unknown> = Promise.resolve();

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#credential = options.credential ?? { type: "none" };
  }

  /** Makes one call, with as many attempts as allowed. */
  async call(route: ClientRoute, given: AnyInput, options: CallOptions): Promise<Answer<unknown>> {
    const input = this.#withKey(route, given);
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#inSession(route, input, options);
      if (answer.ok || options.signal?.aborted === true) return answer;
      const pauseMs = pauseBefore(
        route,
        hasKey(input.body),
        answer.refused,
        tries,
        this.#options.patience ?? PATIENCE,
      );
      if (pauseMs === null) return answer;
      await pause(pauseMs, options.signal);
    }
  }

  #withKey(route: ClientRoute, input: AnyInput): AnyInput {
    if (route.replayable !== true || hasKey(input.body)) return input;
    const idempotencyKey = (this.#options.newKey ?? newUuid)();
    return { ...input, body: { ...Object(input.body ?? {}), idempotencyKey } };
  }

  /** Sends a call, refreshing an ended session. A 401 after that: no user is signed in, nothing was done. */
  async #inSession(route: ClientRoute, input: AnyInput, options: CallOptions): Promise<Answer<unknown>> {
    const credential = this.#credential;
    const send = (): Promise<Answer<unknown>> => this.#send(route, input, options);
    const first = await send();
    if (credential.type !== "cookies" || route.anonymous === true || !isSignedOut(first)) return first;
    const refreshed = this.#refreshing.then(async () => {
      // Another call, or another page, may have refreshed the session meanwhile.
      const second = await send();
      if (!isSignedOut(second)) return second;
      const answer = await this.#send(ROUTES.refreshSession, {}, options);
      return answer.ok ? send() : answer;
    });
    this.#refreshing = refreshed;
    return refreshed;
  }

  async #send(
    route: ClientRoute,
    { body, ...input }: AnyInput,
    options: CallOptions,
  ): Promise<Answer<unknown>> {
    const { baseUrl, fetch: send = fetch, timeoutMs = 60_000 } = this.#options;
    const signal = signalOf(options, route.file === true ? null : (options.timeoutMs ?? timeoutMs));
    try {
      const response = await send(`${baseUrl}${addressOf(route, input)}`, {
        method: route.method,
        headers: this.#headers(body !== undefined),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === null ? {} : { signal }),
      });
      return await answerOf(route, response);
    } catch {
      return { ok: false, refused: noAnswer() };
    }
  }

  #headers(hasBody: boolean): Record<string, string> {
    const credential = this.#credential;
    const json = hasBody ? { "content-type": "application/json" } : {};
    if (credential.type === "cookies") return { ...json, "svc-session": "cookie" };
    if (credential.type === "none") return json;
    const { token } = credential;
    return { ...json, authorization: `Bearer ${typeof token === "string" ? token : token()}` };
  }
}

/** Returns the signal that ends a call. A file has no timeout: it takes as long as its reader does. */
function signalOf({ signal }: CallOptions, timeoutMs: number | null): AbortSignal | null {
  const within = timeoutMs === null ? null : AbortSignal.timeout(timeoutMs);
  if (signal === undefined || within === null) return signal ?? within;
  return AbortSignal.any([within, signal]);
}

const isSignedOut = (answer: Answer<unknown>): boolean => !answer.ok && answer.refused.status === 401;

const hasKey = (body: unknown): boolean =>
  typeof body === "object" && body !== null && "idempotencyKey" in body && body.idempotencyKey !== undefined;

export function addressOf(route: Pick<ClientRoute, "path">, { query, ...ids }: AnyInput): string {
  const path = route.path.replaceAll(/:(\w+)/g, (_whole, name: string) =>
    encodeURIComponent(String(ids[name])),
  );
  const search = new URLSearchParams(
    Object.entries(query ?? {}).flatMap(([name, value]): [string, string][] =>
      value === undefined || value === null ? [] : [[name, String(value)]],
    ),
  ).toString();
  return search === "" ? path : `${path}?${search}`;
}

/** Returns the address of a file, for a link. */
export const addressOfFile = (id: FileId, query: Readonly<Record<string, Plain>>): string =>
  addressOf(ROUTES[id], { query });
