import { z } from "zod";
import { reasonOf } from "./until.ts";

/** A client waits this long; the service promises an answer within 5 s. */
const ANSWER_MS = 15_000;

export type Answer =
  | { readonly status: number; readonly body: unknown }
  /** The line broke, or nothing came. */
  | { readonly status: null; readonly reason: string };

export interface Request {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly token: string | null;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** One server after the other, as a load balancer would; one that is down is known by having no answer. */
export class Service {
  readonly #baseUrls: readonly string[];
  #turn = 0;

  constructor(baseUrls: readonly string[]) {
    this.#baseUrls = baseUrls;
  }

  ask(request: Request): Promise<Answer> {
    this.#turn += 1;
    return ask(this.#baseUrls[this.#turn % this.#baseUrls.length] ?? "", request);
  }
}

/** Asks once. Never throws: that there is no answer is one too. */
async function ask(baseUrl: string, { body, method, path, token }: Request): Promise<Answer> {
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = await response.text();
    const parsed: unknown = text === "" ? null : JSON.parse(text);
    return { status: response.status, body: parsed };
  } catch (error) {
    return { status: null, reason: reasonOf(error) };
  }
}

const refusal = z.object({ error: z.string() });

/** The code of a refusal; null: it is none. */
export function codeOf(answer: Answer): string | null {
  if (answer.status === null) return null;
  const parsed = refusal.safeParse(answer.body);
  return parsed.success ? parsed.data.error : null;
}

/** Whether the same request may be sent again and come to something: an outage, or too much at once. */
export const isPassing = ({ status }: Answer): boolean => status === null || status === 503 || status === 429;
