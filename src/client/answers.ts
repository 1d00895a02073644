import type { Answer, ClientRoute, Refused } from "./types.ts";

/** Reads an error's body; each part is validated before it is used. */
const objectIn = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {};
const textIn = (value: unknown): string | null => (typeof value === "string" ? value : null);
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textsIn = (value: unknown): readonly string[] =>
  listIn(value).filter((each): each is string => typeof each === "string");

const isCode = (value: unknown): value is Refused["code"] =>
  typeof value === "string" && /^[A-Z][A-Z_]+$/.test(value);

const NOTHING = {
  issues: [],
  challenge: null,
  retryAfterSeconds: null,
  organizations: [],
  missing: [],
  unknown: [],
} as const;

/** Returns the refusal of a call without an answer: a broken connection or a timeout. */
export const noAnswer = (): Refused => ({
  ...NOTHING,
  code: "NO_ANSWER",
  status: null,
  message: "The service did not answer.",
  requestId: null,
});

function secondsIn(body: unknown, headers: Headers): number | null {
  const named = Number(body ?? headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(named) ? named : null;
}

/** Converts an error response, whoever sent it, to a refusal. */
export function refusedOf(status: number, headers: Headers, answered: unknown): Refused {
  const body = objectIn(answered);
  const { error } = body;
  if (!isCode(error)) {
    return {
      ...NOTHING,
      code: "UNREADABLE",
      status,
      message: "The response did not come from the service.",
      retryAfterSeconds: secondsIn(undefined, headers),
      requestId: headers.get("x-request-id"),
    };
  }
  return {
    code: error,
    status,
    message: textIn(body["message"]) ?? error,
    issues: listIn(body["issues"]).map((issue) => {
      const { message, path } = objectIn(issue);
      return { path: textIn(path) ?? "", message: textIn(message) ?? "" };
    }),
    organizations: listIn(body["organizations"]).map((organization) => {
      const { id, name } = objectIn(organization);
      return { id: textIn(id) ?? "", name: textIn(name) ?? "" };
    }),
    challenge: textIn(body["challenge"]),
    missing: textsIn(body["missing"]),
    unknown: textsIn(body["unknown"]),
    retryAfterSeconds: secondsIn(body["retry_after_seconds"], headers),
    requestId: textIn(body["requestId"]),
  };
}

/** Reads a response. The service's contract defines a success, so its content is not validated here. */
export async function answerOf(route: ClientRoute, response: Response): Promise<Answer<unknown>> {
  const { headers, ok, status } = response;
  const date = Date.parse(headers.get("date") ?? "");
  const now = Number.isNaN(date) ? null : date;
  if (ok && route.file === true) return { ok: true, status, value: response, now };
  const body = parsed(await response.text());
  if (!ok) return { ok: false, refused: refusedOf(status, headers, body) };
  if (body === UNREADABLE) return { ok: false, refused: refusedOf(status, headers, null) };
  return { ok: true, status, value: body, now };
}

const UNREADABLE = Symbol("no JSON");

function parsed(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return UNREADABLE;
  }
}
