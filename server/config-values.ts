import ipaddr from "ipaddr.js";
import { z } from "zod";

/** Trusted proxies, as in Express's `trust proxy`: addresses, or a number of hops; false for none. */
export type TrustedProxies = readonly string[] | number | false;

export const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ""));

/** Must be at the root, where pages request their scripts and the API. */
export const rootUrl = url.refine((value) => {
  const { hash, password, pathname, search, username } = new URL(value);
  return pathname === "/" && [hash, password, search, username].every((part) => part === "");
}, "must have no path, since the service is served at the root: give it a host name or a port of its own");

/** Address on a separate port for other servers only. What passes there is sealed, so it needs no TLS. */
export const internalUrl = z
  .url({ protocol: /^http$/ })
  .transform((value) => new URL(value))
  .refine(
    ({ hash, password, pathname, search, username }) =>
      pathname === "/" && [hash, password, search, username].every((part) => part === ""),
    "must be this server's own address and port in the network of the servers, such as http://10.0.0.5:8081.",
  );

const NAMED_NETWORKS: readonly string[] = ["loopback", "linklocal", "uniquelocal"];
const HOPS_MAX = 32;

const isNetwork = (text: string): boolean =>
  NAMED_NETWORKS.includes(text) ||
  ipaddr.IPv6.isValid(text) ||
  ipaddr.IPv4.isValidFourPartDecimal(text) ||
  (ipaddr.isValidCIDR(text) && !text.endsWith("/0"));

/** Refuses `true`, which Express accepts: any client could then choose its own address. */
export const trustedProxies = z
  .string()
  .transform((text, check): TrustedProxies => {
    if (text === "" || text === "false") return false;
    if (/^\d{1,2}$/.test(text) && Number(text) <= HOPS_MAX) return Number(text);
    const networks = text.split(",").map((each) => each.trim());
    if (networks.every(isNetwork)) return networks;
    check.addIssue({
      code: "custom",
      message: "Name addresses or networks, such as `loopback, 10.0.0.0/8`, or a number of hops.",
    });
    return z.NEVER;
  })
  .default(false);

/** Must not be an IP address: browsers create no passkeys for one. */
export const rpId = z
  .string()
  .max(253)
  .regex(
    /^(localhost|([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?)$/,
    "Name a domain in lower case, such as `example.com`.",
  );

const ORIGINS_MAX = 16;

/** Whether an origin can have passkeys: browsers allow them only with https or on localhost. */
const isOrigin = (text: string): boolean =>
  URL.canParse(text) && new URL(text).origin === text && /^(https:|http:\/\/localhost(:|$))/.test(text);

export const origins = z.string().transform((text, check): readonly string[] => {
  const named = text.split(",").map((each) => each.trim());
  if (named.length <= ORIGINS_MAX && named.every(isOrigin)) return named;
  check.addIssue({
    code: "custom",
    message: "Name the origins of pages, such as `https://app.example.com, https://example.com:8443`.",
  });
  return z.NEVER;
});

/** Splits a comma-separated list. An empty text gives an empty list. */
export const listed = (text: string): string[] =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");

const HOST_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

export const hostNames = z
  .string()
  .transform(listed)
  .refine(
    (all) => all.every((each) => HOST_NAME.test(each)),
    "Name hosts without ports, such as `mcp.internal`.",
  )
  .default([]);

export const cidrs = z
  .string()
  .transform(listed)
  .refine(
    (all) => all.every((each) => ipaddr.isValidCIDR(each)),
    "Name networks, such as `127.0.0.0/8, ::1/128`.",
  )
  .default([]);

export function whole(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}.`;
  return z.coerce.number<string>({ error }).int({ error }).min(min, { error }).max(max, { error });
}

export const numbers = (min: number, max: number, countMax: number) =>
  z
    .string()
    .transform(listed)
    .pipe(z.array(whole(min, max)).max(countMax));
