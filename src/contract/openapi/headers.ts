import type { ErrorCode } from "../../domain/errors.ts";
import { WAITS } from "./errors.ts";

/** Headers of answers, each described once. */

interface Header {
  readonly description: string;
  readonly required: boolean;
  readonly schema: Readonly<Record<string, unknown>>;
}

const count = { type: "integer", minimum: 0 };

/** Headers of every response. */
const EVERYWHERE: Readonly<Record<string, Header>> = {
  "x-ratelimit-limit": {
    description:
      "Requests that the caller may make in a minute: by its organization's plan for a key or a person, by address for " +
      "callers without a valid credential.",
    required: true,
    schema: { ...count, examples: [1_000] },
  },
  "x-ratelimit-remaining": {
    description: "How many requests are left in the current minute.",
    required: true,
    schema: { ...count, examples: [993] },
  },
  "x-ratelimit-reset": {
    description: "When that minute ends, in Unix seconds.",
    required: true,
    schema: { ...count, examples: [1_790_000_040] },
  },
  "x-request-id": {
    description: "The request's id, which is also in the service's log and in the body of errors.",
    required: true,
    schema: { type: "string", format: "uuid", examples: ["01a2068b-40a6-73a5-aa10-002b054e3cb7"] },
  },
};

/** Headers of some responses. */
const SOMEWHERE = {
  "retry-after": {
    description: "Seconds to wait before trying again: `retry_after_seconds` of the body.",
    required: true,
    schema: { ...count, examples: [30] },
  },
  "www-authenticate": {
    description:
      "How to authenticate: by a bearer token; `error` says that the one that was sent is no good.",
    required: true,
    schema: { type: "string", pattern: "^Bearer", examples: ["Bearer"] },
  },
  allow: {
    description: "The methods that the path has.",
    required: true,
    schema: { type: "string", examples: ["GET, HEAD, OPTIONS"] },
  },
  "content-disposition": {
    description: "Marks the response as a file and names it.",
    required: true,
    schema: {
      type: "string",
      pattern: '^attachment; filename="[^"]+"$',
      examples: ['attachment; filename="export"'],
    },
  },
  "idempotency-replayed": {
    description: "`true`: the request repeats an earlier one, and nothing was done again.",
    required: true,
    schema: { type: "string", enum: ["true"] },
  },
  "set-cookie": {
    description: "The session's tokens, if the page requested cookies.",
    required: false,
    schema: { type: "string" },
  },
} as const satisfies Readonly<Record<string, Header>>;

export type SomeHeader = keyof typeof SOMEWHERE;

/** Header of a status of which only some codes have a time to wait. */
const SOMETIMES = { ...SOMEWHERE["retry-after"], required: false } as const;
const SOMETIMES_NAME = "retry-after-sometimes";

export const HEADERS: Readonly<Record<string, Header>> = {
  ...EVERYWHERE,
  ...SOMEWHERE,
  [SOMETIMES_NAME]: SOMETIMES,
};

export const headersWith = (...more: readonly SomeHeader[]): Readonly<Record<string, object>> =>
  Object.fromEntries(
    [...Object.keys(EVERYWHERE), ...more].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );

export function headersOfErrors(
  status: string,
  codes: readonly ErrorCode[],
): Readonly<Record<string, object>> {
  const waiting = codes.filter((code) => WAITS.has(code)).length;
  const isMixed = waiting > 0 && waiting < codes.length;
  return {
    ...headersWith(
      ...(status === "405" ? (["allow"] as const) : []),
      ...(status === "401" ? (["www-authenticate"] as const) : []),
      ...(waiting > 0 ? (["retry-after"] as const) : []),
    ),
    ...(isMixed ? { "retry-after": { $ref: `#/components/headers/${SOMETIMES_NAME}` } } : {}),
  };
}
