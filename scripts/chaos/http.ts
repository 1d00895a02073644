import { reasonOf } from "./until.ts";

/** A client waits this long; the service promises an answer within 5 s. */
const ANSWER_MS = 15_000;

export type Answer =
  | { readonly status: number; readonly body: unknown }
  /** The line broke, or nothing came. */
  | { readonly status: null; readonly reason: string };

export interface Request {
  readonly method: "GET" | "POST" | "PUT";
  readonly path: string;
  readonly token: string | null;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** Asks once. Never throws: that there is no answer is one too. */
export async function ask(baseUrl: string, { body, method, path, token }: Request): Promise<Answer> {
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
    const parsed: unknown = JSON.parse(await response.text());
    return { status: response.status, body: parsed };
  } catch (error) {
    return { status: null, reason: reasonOf(error) };
  }
}

/** Whether the same request may be sent again and come to something: an outage, or too much at once. */
export const isPassing = ({ status }: Answer): boolean => status === null || status === 503 || status === 429;
