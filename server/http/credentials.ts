import type { IncomingMessage } from "node:http";

const AUTHORIZATION = "authorization";

/**
 * Returns the request's only Authorization header; undefined if there is none. Two headers give the empty string: Node
 * would read the first and another server the last, so they are no credential and rule out a cookie as well.
 */
export function authorizationOf(request: IncomingMessage): string | undefined {
  const { headers, rawHeaders } = request;
  if (headers.authorization === undefined) return undefined;
  const names = rawHeaders.filter((text, index) => index % 2 === 0 && isAuthorization(text));
  return names.length === 1 ? headers.authorization : "";
}

const isAuthorization = (name: string): boolean =>
  name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION;
