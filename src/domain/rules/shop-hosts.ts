/** Hosts of shops, as rules name and compare them. */

/** A URL that was judged before: scheme, host and port, without user or password. */
const AUTHORITY = /^(https?):\/\/(\[[^\]]+\]|[^:/?#]+)(?::(\d+))?/i;

/** The host of a URL, in lower case. */
export function hostIn(url: string): string {
  const [, , host] = AUTHORITY.exec(url) ?? [];
  if (host === undefined) throw new Error("a purchase has no host");
  return host.toLowerCase();
}

/** The names by which rules find the shop: its host on every port, and on its own. */
export function shopNames(url: string): readonly string[] {
  const [, scheme = "", , port] = AUTHORITY.exec(url) ?? [];
  const host = hostIn(url);
  const own = port ?? (scheme.toLowerCase() === "http" ? "80" : "443");
  return [`host:${host}`, `host:${host}:${own}`];
}
