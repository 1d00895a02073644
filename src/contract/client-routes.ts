import { z } from "zod";
import { operationList } from "./registry.ts";
import type { Operation } from "./types.ts";

/** Facts about an operation's route that a client needs. Flags are present only if true. */
export interface RouteFacts {
  readonly method: string;
  /** Path with `:id` placeholders. */
  readonly path: string;
  /** Whether no credential is needed. */
  readonly anonymous?: true;
  /** Whether the body has an `idempotencyKey`, so that the request can be replayed. */
  readonly replayable?: true;
  /** Name of the records in a list's page. */
  readonly list?: string;
  /** Whether a success is a file, streamed in parts. */
  readonly file?: true;
}

/** Returns the routes of all operations by id, sorted: the required content of `src/client/routes.ts`. */
export function clientRoutes(): Readonly<Record<string, RouteFacts>> {
  const routes = operationList.flatMap(([id, operation]): [string, RouteFacts][] =>
    operation.http === null ? [] : [[id, factsOf(operation, operation.http)]],
  );
  return Object.fromEntries(routes.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function factsOf({ access, body, output }: Operation, http: NonNullable<Operation["http"]>): RouteFacts {
  const list = pluralOf(output);
  return {
    method: http.method.toUpperCase(),
    path: http.path,
    ...(access.kind === "public" ? { anonymous: true } : {}),
    ...(takesKey(body) ? { replayable: true } : {}),
    ...(list === null ? {} : { list }),
    ...(http.contentType === undefined ? {} : { file: true }),
  };
}

/** Converts a schema as the reference does: combined schemas have no shape of their own. */
const asJson = (schema: z.ZodType, io: "input" | "output"): Readonly<Record<string, unknown>> =>
  z.toJSONSchema(schema, { io, unrepresentable: "any" });

const takesKey = (body: z.ZodType): boolean =>
  JSON.stringify(asJson(body, "input")).includes('"idempotencyKey":');

function pluralOf(output: z.ZodType): string | null {
  const properties = asJson(output, "output")["properties"];
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  return names.includes("nextCursor") ? (names.find((name) => name !== "nextCursor") ?? null) : null;
}
