import { isIP } from "node:net";
import type { Request } from "express";
import { type Refusal, refusal } from "../../src/domain/errors.ts";

/**
 * Decides which requests may come to the MCP endpoint, to the pages, and wherever cookies or a link's secret count.
 * Judges Origin, and Host against DNS rebinding. Ignores headers that a proxy adds.
 */
export class Callers {
  readonly #origins: ReadonlySet<string>;
  readonly #hosts: ReadonlySet<string>;

  /** `urls`: where the service is reached. `allowedHosts`: further names, such as the one that a proxy puts into Host. */
  constructor(urls: readonly string[], allowedHosts: readonly string[]) {
    this.#origins = new Set(urls.flatMap(originsOf));
    this.#hosts = new Set([
      "localhost",
      ...urls.map((url) => new URL(url).hostname),
      ...allowedHosts.map((host) => host.toLowerCase()),
    ]);
  }

  /** Refuses what a web page sends to another name than its own, as its browser says. Null: no such page does. */
  foreignPage({ headers: { host, origin } }: Pick<Request, "headers">): Refusal | null {
    const isOwn = origin === undefined || this.#origins.has(origin) || hostOf(origin) === host;
    return isOwn ? null : refusal("ORIGIN_NOT_ALLOWED");
  }

  /** Null: it may. */
  refusalOf({ headers }: Pick<Request, "headers">): Refusal | null {
    const { host, origin } = headers;
    if (origin !== undefined && !this.#origins.has(origin)) return refusal("ORIGIN_NOT_ALLOWED");
    const name = hostnameOf(host ?? "");
    // An IP address can't be rebound.
    return name !== null && (isAddress(name) || this.#hosts.has(name)) ? null : refusal("HOST_NOT_ALLOWED");
  }
}

const hostOf = (origin: string): string | null => (URL.canParse(origin) ? new URL(origin).host : null);

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** A page's origin at this address: on the machine itself by any of its names. */
export function originsOf(url: string): string[] {
  const { hostname, origin, port, protocol } = new URL(url);
  if (!LOOPBACK.includes(hostname)) return [origin];
  return LOOPBACK.map((name) => `${protocol}//${name}${port === "" ? "" : `:${port}`}`);
}

/** Without its port, in lower case; null for what is none. */
function hostnameOf(host: string): string | null {
  const url = `http://${host}`;
  if (host === "" || !URL.canParse(url)) return null;
  const { hostname, pathname, username } = new URL(url);
  return pathname === "/" && username === "" ? hostname : null;
}

const isAddress = (name: string): boolean => isIP(name.replace(/^\[|\]$/g, "")) !== 0;
