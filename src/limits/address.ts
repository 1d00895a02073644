import ipaddr from "ipaddr.js";

/** Parts of an IPv6 address (of 16 bits) that are one subscriber's network: a /64. */
const NETWORK_PARTS = 4;
/** Those that are one site's, or one of its provider's: a /48. */
const SITE_PARTS = 3;

/** What is counted as one ends with it. */
const SUFFIX = "::/64";

/** Some proxies name the port, too: `192.0.2.1:1234`, `[2001:db8::1]:1234`. */
const WITH_PORT = /^(?:(\d+(?:\.\d+){3})|\[([0-9a-fA-F:.]+)\])(?::\d+)?$/;

/**
 * What requests of one address are counted under: an IPv4 address, be it written as IPv6 or not; the /64 of an IPv6
 * address, since a client that has one address of it has them all. Null for what is no address.
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

/** The /48 of an address that is counted as a /64; null for everything else. */
export function networkAround(counted: string): string | null {
  if (!counted.endsWith(SUFFIX)) return null;
  return `${counted.split(":").slice(0, SITE_PARTS).join(":")}::/48`;
}
