import ipaddr from "ipaddr.js";

/** Parts of an IPv6 address (of 16 bits) that are one subscriber's network: a /64. */
const NETWORK_PARTS = 4;

/** Some proxies name the port, too: `192.0.2.1:1234`, `[2001:db8::1]:1234`. */
const WITH_PORT = /^(?:(\d+(?:\.\d+){3})|\[([0-9a-fA-F:.]+)\])(?::\d+)?$/;

/**
 * What requests of one address are counted under: an IPv4 address, be it written as IPv6 or not; the /64 of an IPv6
 * address, since whoever has one address of it has them all. Null for what is no address.
 */
export function countedAddress(text: string | undefined): string | null {
  const [, four, six] = WITH_PORT.exec(text ?? "") ?? [];
  const bare = four ?? six ?? text ?? "";
  const isFour = ipaddr.IPv4.isValidFourPartDecimal(bare);
  if (!isFour && !ipaddr.IPv6.isValid(bare)) return null;
  const address = ipaddr.process(bare);
  if (address instanceof ipaddr.IPv4) return address.toString();
  const network = address.parts.slice(0, NETWORK_PARTS).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}
