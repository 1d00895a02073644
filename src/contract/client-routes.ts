import { z } from "zod";
import { operationList } from "./registry.ts";
import type { Operation } from "./types.ts";

/** Facts that a client needs about an operation's route. Flags are present if true. */
export interface RouteFacts {
  readonly method: string;
  /** Path with `:id` placeholders. */
  readonly path: string;
  /** Needs no credential. */
  readonly anonymous?: true;
  /** Takes an `idempotencyKey` in its body, so that it can be replayed. */
  readonly replayable?: true;
  /** The records' name in a page of a list. */
  readonly list?: string;
  /** A success comes as a file, piece by piece. */
  readonly file?: true;
}

/** The routes of all operations by their ids, sorted: what `src/client/routes.ts` has to hold. */
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

/** Converts a schema as the reference does: schemas that combine others have no shape of their own. */
const asJson = (schema: z.ZodType, io: "input" | "output"): Readonly<Record<string, unknown>> =>
  z.toJSONSchema(schema, { io, unrepresentable: "any" });

const takesKey = (body: z.ZodType): boolean =>
  JSON.stringify(asJson(body, "input")).includes('"idempotencyKey":');

function pluralOf(output: z.ZodType): string | null {
  const properties = asJson(output, "output")["properties"];
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  return names.includes("nextCursor") ? (names.find((name) => name !== "nextCursor") ?? null) : null;
}
