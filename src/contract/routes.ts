import type { HttpBinding, Operation } from "./types.ts";

export interface Route<Id extends string = string> {
  readonly id: Id;
  readonly operation: Operation;
  readonly http: HttpBinding;
}

type Bound = Pick<Route, "id"> & { readonly http: Pick<HttpBinding, "method" | "path"> };

const segmentsOf = ({ http }: Bound): readonly string[] => http.path.split("/");
const isParameter = (segment: string): boolean => segment.startsWith(":");

/**
 * Returns the routes of all operations that have one, ordered so that a literal segment precedes a parameter in the
 * same place, regardless of the operations' names: `/agents/export` before `/agents/:id`.
 * Throws if two routes of one method match the same path and neither is more literal: the order would decide.
 */
export function routesOf<Id extends string>(
  operations: readonly (readonly [Id, Operation])[],
): readonly Route<Id>[] {
  const routes = operations.flatMap(([id, operation]) =>
    operation.http === null ? [] : [{ id, operation, http: operation.http }],
  );
  const [conflict] = conflictsOf(routes);
  if (conflict !== undefined) throw new Error(`Two routes match the same path: ${conflict}`);
  return inOrder(routes);
}

/** Orders routes as described at `routesOf`. */
export function inOrder<R extends Bound>(routes: readonly R[]): readonly R[] {
  const key = (route: R): string =>
    segmentsOf(route)
      .map((segment) => (isParameter(segment) ? "1" : `0${segment}`))
      .join("/");
  return routes.toSorted((a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b))));
}

/**
 * Returns a path's methods for `Allow`, with `HEAD` wherever `GET` is; empty if no route matches. A path written out
 * literally in a route belongs to that route alone, not to one with an id in its place. `path` is undecoded: an
 * undecodable segment is no id.
 */
export function methodsAt(routes: readonly Bound[], path: string): readonly string[] {
  const named = path.split("/");
  const [first, ...others] = inOrder(routes.filter((route) => matches(route, named)));
  if (first === undefined) return [];
  const here = [first, ...others.filter(({ http }) => http.path === first.http.path)];
  const methods = here.map(({ http }) => http.method.toUpperCase());
  return [...new Set(methods.includes("GET") ? ["GET", "HEAD", ...methods] : methods), "OPTIONS"];
}

function matches(route: Bound, named: readonly string[]): boolean {
  const segments = segmentsOf(route);
  return (
    segments.length === named.length &&
    segments.every((segment, index) => {
      const text = named[index] ?? "";
      return isParameter(segment) ? text !== "" && isDecodable(text) : segment === text;
    })
  );
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Describes pairs of routes that match the same path although neither is more literal. */
export function conflictsOf(routes: readonly Bound[]): readonly string[] {
  return routes.flatMap((route, index) =>
    routes
      .slice(index + 1)
      .filter((other) => isConflict(route, other))
      .map((other) => `${route.id} (${route.http.path}) and ${other.id} (${other.http.path})`),
  );
}

function isConflict(a: Bound, b: Bound): boolean {
  const [left, right] = [segmentsOf(a), segmentsOf(b)];
  if (a.http.method !== b.http.method || left.length !== right.length) return false;
  const pairs = left.map((segment, index) => [segment, right[index] ?? ""] as const);
  if (pairs.some(([one, other]) => !isParameter(one) && !isParameter(other) && one !== other)) return false;
  const isMoreLiteral = pairs.some(([one, other]) => !isParameter(one) && isParameter(other));
  const isLessLiteral = pairs.some(([one, other]) => isParameter(one) && !isParameter(other));
  return isMoreLiteral === isLessLiteral;
}
