import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { exchange } from "./exchange.ts";
import { expectNoCardData, noteSecretsChosen, noteSecretsGiven } from "./secrets.ts";
import { agent, approval, madePayment, payment } from "../../src/contract/records.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON body; undefined when there is none. */
  readonly body: unknown;
}

export interface CallOptions {
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Documents of the contract, which have made-up keys. */
const EXAMPLES = "/v1/openapi";

/** JSON as what it says, a file or events as their text. */
function parsedAs(contentType: string | null, text: string): unknown {
  if (/^(application\/x-ndjson|text\/csv|text\/event-stream)\b/.test(contentType ?? "")) return text;
  return text === "" ? undefined : JSON.parse(text);
}

const created = z.object({ agent, apiKey: z.string().nullable() });
const session = z.object({ token: z.string() });
const approvals = z.object({ approvals: z.array(approval) });

/** An address that no other test has: the tests share one machine, and anonymous requests are counted by address. */
export const freshAddress = (): string => `10.${[0, 0, 0].map(() => String(randomInt(256))).join(".")}`;

/** Repeats of a call that is safe to repeat, as a client that is answered 503 is told to. */
const REPEATS_MAX = 60;

/** Agents that are asked for until there is one whose key was not lost with a 503. */
const AGENTS_TRIED_MAX = 5;

/** As a 503 says: `retry_after_seconds`. */
export const REPEAT_AFTER_MS = 1_000;

/** What is told to whom had better come again; every other answer is one. */
export const FOR_NOW: readonly unknown[] = ["SERVICE_UNAVAILABLE", "CREATE_RETRYABLE"];

interface Answered {
  /** Null: the line broke. */
  readonly status: number | null;
  readonly body?: unknown;
}

/** Whether a call was told to come again, or not answered at all; where its body is not known, by the status alone. */
export function isForNow({ body, status }: Answered): boolean {
  if (status !== 503) return status === null;
  return typeof body !== "object" || body === null || !("error" in body) || FOR_NOW.includes(body.error);
}

/**
 * What a call is answered once the service can be reached: on a busy machine some are told to come again, since their
 * time is over before their turn has come. Only where a repeat does nothing twice.
 */
export async function onceReachable<T extends Answered>(call: (repeat: number) => Promise<T>): Promise<T> {
  for (let repeat = 0; ; repeat += 1) {
    const answer = await call(repeat);
    if (!isForNow(answer) || repeat === REPEATS_MAX) return answer;
    repeats += 1;
    await sleep(REPEAT_AFTER_MS);
  }
}

let repeats = 0;

/** How many calls of this process were repeated: a service that often says "come again" would hide behind that. */
export const repeatsSoFar = (): number => repeats;

/** A client over real HTTP. Each call comes from an address of its own, unless it names one. */
export class Api {
  readonly #baseUrl: string;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  async call(method: string, path: string, { token, body, headers = {} }: CallOptions = {}): Promise<Answer> {
    const answer = await exchange(`${this.#baseUrl}${path}`, {
      method,
      headers: {
        "x-forwarded-for": freshAddress(),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const { headers: received, status, text } = answer;
    if (!path.startsWith(EXAMPLES)) expectNoCardData(text);
    const parsed = parsedAs(received.get("content-type"), text);
    noteSecretsChosen(body);
    noteSecretsGiven(parsed);
    return { status, headers: received, body: parsed };
  }

  /** The same, repeated while it is told to come again: only where a repeat does nothing twice. */
  surely(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    return onceReachable(() => this.call(method, path, options));
  }

  async signIn(email: string, password: string): Promise<string> {
    const answer = await this.surely("POST", "/v1/auth/sign-in", { body: { email, password } });
    return session.parse(answer.body).token;
  }

  /** A new agent with its key. */
  async createAgent(token: string, teamId: string, fields: Readonly<Record<string, unknown>> = {}) {
    for (let tries = 1; ; tries += 1) {
      const body = { name: "Agent", teamId, budgetCents: 10_000, idempotencyKey: randomUUID(), ...fields };
      const answer = await this.surely("POST", "/v1/agents", { token, body });
      const { agent: made, apiKey } = created.parse(answer.body);
      if (apiKey !== null) return { agent: made, apiKey };
      // It was made by a request that was answered 503: a person is not given its key again.
      if (tries === AGENTS_TRIED_MAX) throw new Error("a new agent comes with its key");
    }
  }

  /** POST /v1/payments by card, with a fresh idempotency key unless one is given. */
  payRaw(key: string, fields: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
    const body = {
      rail: "card",
      amountCents: 100,
      merchant: "shop",
      purpose: "a test",
      idempotencyKey: randomUUID(),
      ...fields,
    };
    return this.call("POST", "/v1/payments", { token: key, body });
  }

  /** A payment that must be answered as one. */
  async pay(key: string, fields: Readonly<Record<string, unknown>> = {}) {
    const one = { idempotencyKey: randomUUID(), ...fields };
    return madePayment.parse((await onceReachable(() => this.payRaw(key, one))).body);
  }

  async payment(key: string, transactionId: string) {
    return payment.parse((await this.surely("GET", `/v1/payments/${transactionId}`, { token: key })).body);
  }

  async pendingApprovals(token: string) {
    return approvals.parse((await this.surely("GET", "/v1/approvals/pending", { token })).body).approvals;
  }
}
