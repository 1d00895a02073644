import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { PlainError } from "../plain-error.ts";

type Four = ReturnType<typeof ipaddr.IPv4.parse>;
type Six = ReturnType<typeof ipaddr.IPv6.parse>;
type Network<T> = readonly [T, number];

/** Reach of an address: the public internet, an allowed network, or neither. An unreadable address is neither. */
export type Reach = "public" | "allowed" | "refused";

/**
 * IPv4 networks closed to strangers' URLs: IANA's special-purpose registry, multicast, and clouds' internal addresses.
 * The library knows most of them too; a network missing from one of the two lists is still refused.
 */
const CLOSED_FOUR = fours(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
);

/** Range of all public IPv6 addresses. */
const GLOBAL_SIX = sixes("2000::/3");

/** Exceptions within that range: special purposes, documentation, tunnels, returned networks. */
const CLOSED_SIX = sixes(
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3ffe::/16",
  "3fff::/20",
);

/**
 * IPv6 networks that embed an IPv4 address: compatible, mapped, translated, NAT64, Teredo and 6to4. A router or the
 * system's sockets turn such an address into one that was not checked, so none is allowed, whatever else is.
 */
const EMBEDS_IPV4 = sixes(
  "::/96",
  "::ffff:0:0/96",
  "::ffff:0:0:0/96",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "2001::/32",
  "2002::/16",
);
const LOOPBACK_SIX = sixes("::1/128");

/** The interface part of an ISATAP address, which also embeds an IPv4 address. */
const ISATAP = { parts: [0x0000, 0x0200], marker: 0x5efe };

function fours(...cidrs: readonly string[]): readonly Network<Four>[] {
  return cidrs.map((cidr) => ipaddr.IPv4.parseCIDR(cidr));
}
function sixes(...cidrs: readonly string[]): readonly Network<Six>[] {
  return cidrs.map((cidr) => ipaddr.IPv6.parseCIDR(cidr));
}

const within = <T extends Four | Six>(address: T, networks: readonly Network<T>[]): boolean =>
  networks.some(([network, bits]) => address.match(network, bits));

const embedsIpv4 = (address: Six): boolean => {
  const [, , , , fifth, sixth] = address.parts;
  const isatap = fifth !== undefined && ISATAP.parts.includes(fifth) && sixth === ISATAP.marker;
  return isatap || (within(address, EMBEDS_IPV4) && !within(address, LOOPBACK_SIX));
};

export class AddressRules {
  readonly #allowedFour: readonly Network<Four>[];
  readonly #allowedSix: readonly Network<Six>[];

  /** Throws a `PlainError` if a network cannot be read. */
  constructor(allowCidrs: readonly string[]) {
    for (const cidr of allowCidrs) checkNetwork(cidr);
    this.#allowedFour = fours(...allowCidrs.filter((cidr) => !isSix(cidr)));
    this.#allowedSix = sixes(...allowCidrs.filter(isSix));
  }

  /** Whether any network is allowed in addition to the public internet. */
  get allowsMore(): boolean {
    return this.#allowedFour.length + this.#allowedSix.length > 0;
  }

  /**
   * Returns an address's reach. Addresses are compared only with networks of their own kind: a mapped IPv4 address does
   * not match IPv4 networks.
   */
  reachOf(text: string): Reach {
    // An address with a zone is local to one link, and the rules do not compare zones.
    if (text.includes("%")) return "refused";
    const kind = isIP(text);
    if (kind === 4) return this.#reachOfFour(ipaddr.IPv4.parse(text));
    return kind === 6 ? this.#reachOfSix(ipaddr.IPv6.parse(text)) : "refused";
  }

  #reachOfFour(address: Four): Reach {
    if (within(address, this.#allowedFour)) return "allowed";
    return address.range() === "unicast" && !within(address, CLOSED_FOUR) ? "public" : "refused";
  }

  #reachOfSix(address: Six): Reach {
    if (embedsIpv4(address)) return "refused";
    if (within(address, this.#allowedSix)) return "allowed";
    const open = within(address, GLOBAL_SIX) && !within(address, CLOSED_SIX);
    return open && address.range() === "unicast" ? "public" : "refused";
  }
}

const isSix = (cidr: string): boolean => cidr.includes(":");

/** Throws for a network that could never match, which is a mistake in the configuration. */
function checkNetwork(cidr: string): void {
  const [address = "", bits = ""] = cidr.split("/");
  const kind = isIP(address);
  const most = kind === 4 ? 32 : 128;
  const read = kind !== 0 && !address.includes("%") && /^\d{1,3}$/.test(bits) && Number(bits) <= most;
  if (!read || cidr !== `${address}/${bits}`)
    throw new PlainError(`"${cidr}" is not a network: write one as 127.0.0.0/8 or ::1/128.`);
  if (kind === 6 && Number(bits) > 0 && embedsIpv4(ipaddr.IPv6.parse(address)))
    throw new PlainError(`"${cidr}" embeds IPv4 addresses: write the network as IPv4.`);
}
