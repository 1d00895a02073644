import ipaddr from "ipaddr.js";

/** Number of 16-bit parts of an IPv6 address that form one subscriber's network: a /64. */
const NETWORK_PARTS = 4;
/** Number of parts that form one site or part of a provider: a /48. */
const SITE_PARTS = 3;

/** Suffix of an address counted as a network. */
const SUFFIX = "::/64";

/** Some proxies include the port: `192.0.2.1:1234`, `[2001:db8::1]:1234`. */
const WITH_PORT = /^(?:(\d+(?:\.\d+){3})|\[([0-9a-fA-F:.]+)\])(?::\d+)?$/;

/**
 * Returns the address under which requests are counted: an IPv4 address, even in IPv6 notation, or the /64 of an IPv6
 * address, since its client has all of it. Null for text that is not an address.
 */
export function countedAddress(text: string | undefined): string | null {
  const [, four, six] = WITH_PORT.exec(text ?? "") ?? [];
  const bare = four ?? six ?? text ?? "";
  const isFour = ipaddr.IPv4.isValidFourPartDecimal(bare);
  if (!isFour && !ipaddr.IPv6.isValid(bare)) return null;
  const address = ipaddr.process(bare);
  if (address instanceof ipaddr.IPv4) return address.toString();
  const network = address.parts.slice(0, NETWORK_PARTS).map((part) => part.toString(16));
  return `${network.join(":")}${SUFFIX}`;
}

/** Returns the /48 of an address counted as a /64; null for anything else. */
export function networkAround(counted: string): string | null {
  if (!counted.endsWith(SUFFIX)) return null;
  return `${counted.split(":").slice(0, SITE_PARTS).join(":")}::/48`;
}
