import { isIP } from "node:net";
import { REASONS } from "./reasons.ts";

/** Destination of a URL before any look-up. */
export interface Destination {
  /** Host for connections: an IPv6 address without brackets. */
  readonly host: string;
  /** Whether the host is an address, which is not resolved. */
  readonly isAddress: boolean;
  readonly port: number;
  /** Path and query. */
  readonly path: string;
  /** False for plain HTTP. */
  readonly isTls: boolean;
}

/** Defect of a URL: in words for the caller, and as the reason why nothing was sent. */
export interface UrlProblem {
  readonly message: string;
  readonly reason: string;
}

const URL_CHARACTERS_MAX = 2_048;
const NAME_CHARACTERS_MAX = 253;
const PORTS = { "https:": 443, "http:": 80 } as const;
/**
 * Spaces, controls, a backslash (which some parsers read as a slash and others as part of the host) and lone
 * surrogates, which UTF-8 can't encode.
 */
const UNREADABLE = /[\s\p{Cc}\p{Cs}\\]/u;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Top-level labels without names on the public internet, or without any that can be registered. */
const CLOSED_ENDINGS: ReadonlySet<string> = new Set([
  "alt",
  "arpa",
  "cluster",
  "corp",
  "example",
  "home",
  "internal",
  "intranet",
  "invalid",
  "lan",
  "local",
  "localdomain",
  "localhost",
  "mail",
  "onion",
  "private",
  "svc",
  "test",
]);

/** Public names answered by clouds' internal services. Clouds' other names end in `.internal` or have one label. */
const CLOUD_NAMES: ReadonlySet<string> = new Set([
  "metadata.azure.com",
  "metadata.packet.net",
  "metadata.platformequinix.com",
  "metadata.tencentyun.com",
]);

export const isUrlProblem = (found: object): found is UrlProblem => "message" in found;

const badUrl = (message: string): UrlProblem => ({ message, reason: REASONS.badUrl });

export const CLOSED_NAME: UrlProblem = badUrl("must name a host of the public internet");

export const NOT_HTTPS: UrlProblem = badUrl("must be https");

/** Parses a URL and checks what can be checked without a look-up; the port and the addresses are checked later. */
export function destinationOf(text: string, allowsHttp = false): Destination | UrlProblem {
  if (text.length > URL_CHARACTERS_MAX) return badUrl("must have at most 2,048 characters");
  if (UNREADABLE.test(text))
    return badUrl("must be a URL without spaces, control or broken characters and backslashes");
  const wrong = formProblem(text, allowsHttp);
  if (wrong !== null) return badUrl(wrong);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) return badUrl("must be a URL");
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isAddress = isIP(host) !== 0;
  if (!isAddress && !isName(host))
    return badUrl("must name a host as the DNS does, without a dot at the end");
  const isTls = url.protocol === "https:";
  const port = url.port === "" ? PORTS[isTls ? "https:" : "http:"] : Number(url.port);
  return { host, isAddress, port, path: `${url.pathname}${url.search}`, isTls };
}

/**
 * Returns what is wrong with a URL's text. Checks the text rather than the parsed URL: parsing repairs missing slashes
 * and drops an empty user name or fragment, which another program may read differently.
 */
function formProblem(text: string, allowsHttp: boolean): string | null {
  const [, scheme, slashes = "", authority = ""] = /^([a-z][a-z0-9+.-]*):(\/*)([^/?#]*)/i.exec(text) ?? [];
  if (scheme === undefined) return "must be a URL";
  const isAllowed = scheme.toLowerCase() === "https" || (allowsHttp && scheme.toLowerCase() === "http");
  if (!isAllowed) return NOT_HTTPS.message;
  if (slashes.length !== 2 || authority === "") return "must be a URL with https:// and a host";
  if (authority.includes("@")) return "must not carry a user name or a password";
  return text.includes("#") ? "must not have a fragment" : null;
}

const isName = (host: string): boolean =>
  host.length <= NAME_CHARACTERS_MAX && host.split(".").every((label) => LABEL.test(label));

/** Whether a name belongs to a local network or a cloud's internal services, whatever it resolves to. */
export function isClosedName(name: string): boolean {
  const labels = name.split(".");
  return labels.length === 1 || CLOSED_ENDINGS.has(labels.at(-1) ?? "") || CLOUD_NAMES.has(name);
}
