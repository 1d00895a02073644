import { isIP } from "node:net";
import type { Request } from "express";
import { type Refusal, refusal } from "../../src/domain/errors.ts";

/**
 * Decides which requests may reach the MCP endpoint, the pages, and operations that use cookies or a link's secret.
 * Checks Origin, and checks Host against DNS rebinding. Ignores headers added by proxies.
 */
export class RequestOrigins {
  readonly #origins: ReadonlySet<string>;
  readonly #hosts: ReadonlySet<string>;

  /** `urls`: addresses of the service. `allowedHosts`: further host names, such as one that a proxy sends as Host. */
  constructor(urls: readonly string[], allowedHosts: readonly string[]) {
    this.#origins = new Set(urls.flatMap(originsOf));
    this.#hosts = new Set([
      "localhost",
      ...urls.map((url) => new URL(url).hostname),
      ...allowedHosts.map((host) => host.toLowerCase()),
    ]);
  }

  /** Refuses a request whose browser says that a page of another host sent it. */
  foreignPage({ headers: { host, origin } }: Pick<Request, "headers">): Refusal | null {
    const isOwn = origin === undefined || this.#origins.has(origin) || hostOf(origin) === host;
    return isOwn ? null : refusal("ORIGIN_NOT_ALLOWED");
  }

  /** Returns the refusal of a request by its Origin or Host; null if both are allowed. */
  refusalOf({ headers }: Pick<Request, "headers">): Refusal | null {
    const { host, origin } = headers;
    if (origin !== undefined && !this.#origins.has(origin)) return refusal("ORIGIN_NOT_ALLOWED");
    const name = hostnameOf(host ?? "");
    // An IP address cannot be rebound.
    return name !== null && (isAddress(name) || this.#hosts.has(name)) ? null : refusal("HOST_NOT_ALLOWED");
  }
}

const hostOf = (origin: string): string | null => (URL.canParse(origin) ? new URL(origin).host : null);

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** Returns the origins of pages at a URL. A loopback URL has an origin for each loopback name. */
export function originsOf(url: string): string[] {
  const { hostname, origin, port, protocol } = new URL(url);
  if (!LOOPBACK.includes(hostname)) return [origin];
  return LOOPBACK.map((name) => `${protocol}//${name}${port === "" ? "" : `:${port}`}`);
}

/** Returns the host name without its port, in lower case; null if malformed. */
function hostnameOf(host: string): string | null {
  const url = `http://${host}`;
  if (host === "" || !URL.canParse(url)) return null;
  const { hostname, pathname, username } = new URL(url);
  return pathname === "/" && username === "" ? hostname : null;
}

const isAddress = (name: string): boolean => isIP(name.replace(/^\[|\]$/g, "")) !== 0;
