/** Hosts of shops, as named and compared by rules. */

/** Scheme, host and port of a URL that was validated before, without user or password. */
const AUTHORITY = /^(https?):\/\/(\[[^\]]+\]|[^:/?#]+)(?::(\d+))?/i;

/** Returns the host of a URL, in lower case. */
export function hostIn(url: string): string {
  const [, , host] = AUTHORITY.exec(url) ?? [];
  if (host === undefined) throw new Error("a purchase has no host");
  return host.toLowerCase();
}

/** Returns the names by which rules find the shop: its host on any port, and its host with its port. */
export function shopNames(url: string): readonly string[] {
  const [, scheme = "", , port] = AUTHORITY.exec(url) ?? [];
  const host = hostIn(url);
  const own = port ?? (scheme.toLowerCase() === "http" ? "80" : "443");
  return [`host:${host}`, `host:${host}:${own}`];
}
