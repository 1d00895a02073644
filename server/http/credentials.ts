import type { IncomingMessage } from "node:http";

const AUTHORIZATION = "authorization";

/**
 * The request's one Authorization header; undefined when there is none. Of two, Node would show the first and another
 * server the last: that is no credential, and no excuse for a cookie either, so it is the empty text.
 */
export function authorizationOf(request: IncomingMessage): string | undefined {
  const { headers, rawHeaders } = request;
  if (headers.authorization === undefined) return undefined;
  const names = rawHeaders.filter((text, index) => index % 2 === 0 && isAuthorization(text));
  return names.length === 1 ? headers.authorization : "";
}

const isAuthorization = (name: string): boolean =>
  name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION;
