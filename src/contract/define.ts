import { z } from "zod";
import type { Access, ObjectSchema, Operation } from "./types.ts";

export const noParams = z.strictObject({});
export const noQuery = z.strictObject({});
/** Body of operations without one: absent, or an empty object. */
export const noBody = z.strictObject({}).optional();

type None = typeof noParams;

interface Definition<
  P extends ObjectSchema,
  Q extends ObjectSchema,
  B extends z.ZodType,
  O extends z.ZodType,
  A extends Access,
> extends Omit<Operation<P, Q, B, O, A>, "description" | "params" | "query" | "body" | "tool" | "http"> {
  /** Description of the route; a tool has its own texts. */
  readonly description?: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly http?: Operation["http"];
  readonly tool?: Operation["tool"];
}

/** Completes an operation's definition. Checked at construction, so an invalid one prevents the start. */
export function define<
  O extends z.ZodType,
  A extends Access,
  P extends ObjectSchema = None,
  Q extends ObjectSchema = None,
  B extends z.ZodType = typeof noBody,
>(definition: Definition<P, Q, B, O, A>): Operation<P, Q, B, O, A>;
export function define(
  definition: Definition<ObjectSchema, ObjectSchema, z.ZodType, z.ZodType, Access>,
): Operation {
  const { params = noParams, query = noQuery, body = noBody, http = null, tool = null, ...rest } = definition;
  const { description = "" } = definition;
  if (http === null && tool === null) throw new Error(`"${rest.summary}" is reachable by nothing`);
  if ((http === null) !== (description === "")) {
    throw new Error(`"${rest.summary}": what has a route has a description, and nothing else`);
  }
  if (http !== null && !sameNames(pathNames(http.path), Object.keys(params.shape))) {
    throw new Error(`"${rest.summary}": the path and its parameters differ`);
  }
  return { ...rest, description, params, query, body, http, tool };
}

function pathNames(path: string): string[] {
  return path.split("/").flatMap((part) => (part.startsWith(":") ? [part.slice(1)] : []));
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((name) => right.includes(name));
}
