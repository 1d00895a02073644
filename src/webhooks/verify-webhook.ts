import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Verification of webhook deliveries, for their receivers. The package exports this file as
 * `agent-spending-control/webhooks`; it needs nothing but Node, so it can also be copied into a receiver unchanged.
 */

export const SECRET_PREFIX = "whsec_";

/** Maximum difference between a delivery's timestamp and the receiver's clock. */
const TOLERANCE_SECONDS = 300;
/** A rotation signs twice. The limit bounds the computation for a longer list. */
const SIGNATURES_MAX = 4;
/** Seconds since 1970 as plain digits: other notations of a number are not what was signed. */
const TIMESTAMP = /^[1-9][0-9]{0,11}$/;
const MS_PER_SECOND = 1_000;

/** The event in a delivery. */
export interface WebhookEvent {
  /** The delivery's id, the same for every attempt. */
  readonly id: string;
  readonly type: string;
  /** ISO 8601. */
  readonly created_at: string;
  readonly org_id: string;
  /** Absent, like the next three, for events of the organization alone. */
  readonly project_id?: string;
  readonly team_id?: string;
  readonly agent_id?: string;
  readonly agent_name?: string;
  /** Contents by type; `test: true` marks a test. */
  readonly data: Readonly<Record<string, unknown>>;
}

export type Refused =
  /** A header is missing, empty, or repeated. */
  | "missing_header"
  | "bad_timestamp"
  | "too_old"
  | "too_new"
  /** No signature matches, or the headers name another id or type than the signed body. */
  | "bad_signature"
  /** Correctly signed, but not an event. */
  | "malformed_body";

export type Verified =
  { readonly ok: true; readonly event: WebhookEvent } | { readonly ok: false; readonly reason: Refused };

/** For example `Headers` of fetch. */
export interface HeaderReader {
  get(name: string): string | null;
}

/** For example `request.headers` of node:http. */
export type HeaderRecord = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface WebhookInput {
  /** Body as received, before any parsing: parsing and serializing it again would change the signature. */
  readonly rawBody: Uint8Array | string;
  readonly headers: HeaderReader | HeaderRecord;
  /** The endpoint's secret, including its prefix; both secrets while receivers switch to a new one. */
  readonly secret: string | readonly string[];
  readonly now?: Date;
  readonly toleranceSeconds?: number;
}

/**
 * Returns the event of a genuine delivery, or why the delivery is refused. Throws only for mistakes in the receiver's
 * setup: a missing secret (with an empty one any sender could sign), or a body that is neither bytes nor a string.
 */
export function verifyWebhook(input: WebhookInput): Verified {
  const { headers, now = new Date(), rawBody, toleranceSeconds = TOLERANCE_SECONDS } = input;
  const secrets = checkedSecrets(input.secret);
  const signature = only(headers, "svc-signature");
  const timestamp = only(headers, "svc-timestamp");
  const id = only(headers, "svc-delivery-id");
  const type = only(headers, "svc-event-type");
  if (signature === null || timestamp === null || id === null || type === null)
    return refused("missing_header");

  if (!TIMESTAMP.test(timestamp)) return refused("bad_timestamp");
  const ageSeconds = Math.floor(now.getTime() / MS_PER_SECOND) - Number(timestamp);
  if (-ageSeconds > toleranceSeconds) return refused("too_new");
  // Written this way so that a clock or tolerance that is not a number refuses everything.
  if (!(ageSeconds <= toleranceSeconds)) return refused("too_old");

  if (!isSigned(signature, secrets, timestamp, rawBody)) return refused("bad_signature");
  const event = parseEvent(rawBody);
  if (event === null) return refused("malformed_body");
  // These two headers are not signed: the body vouches for them.
  return event.id === id && event.type === type ? { ok: true, event } : refused("bad_signature");
}

/** Returns one signature of `Svc-Signature`; receivers can sign test deliveries with it. */
export function svcSignature(secret: string, timestamp: string, rawBody: Uint8Array | string): string {
  return `sha256=${createHmac("sha256", secret).update(`${timestamp}.`).update(rawBody).digest("hex")}`;
}

const refused = (reason: Refused): Verified => ({ ok: false, reason });

function checkedSecrets(secret: string | readonly string[]): readonly string[] {
  const secrets = typeof secret === "string" ? [secret] : secret;
  const isOne = (each: string): boolean =>
    each.startsWith(SECRET_PREFIX) && each.length > SECRET_PREFIX.length;
  if (secrets.length > 0 && secrets.every(isOne)) return secrets;
  throw new TypeError(`A webhook secret begins with ${SECRET_PREFIX}: set the one of the endpoint.`);
}

function isSigned(
  header: string,
  secrets: readonly string[],
  timestamp: string,
  rawBody: Uint8Array | string,
): boolean {
  // Repeated headers are joined by a comma and a space. The service sends one, without white space.
  if (/\s/.test(header)) return false;
  const given = header.split(",", SIGNATURES_MAX);
  // All are computed and compared, whichever matches, so that the duration reveals nothing.
  const fits = secrets.flatMap((secret) => {
    const expected = svcSignature(secret, timestamp, rawBody);
    return given.map((each) => isSame(each, expected));
  });
  return fits.includes(true);
}

/** Compares in constant time. The lengths are not secret. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Returns the value of a header that occurs exactly once, else null. */
function only(headers: HeaderReader | HeaderRecord, name: string): string | null {
  const values = isReader(headers)
    ? [headers.get(name)]
    : Object.entries(headers)
        .filter(([each]) => each.toLowerCase() === name)
        .flatMap(([, value]) => value);
  const there = values.filter((value) => value !== undefined && value !== null);
  const [value = ""] = there;
  return there.length === 1 && value !== "" ? value : null;
}

const isReader = (headers: HeaderReader | HeaderRecord): headers is HeaderReader =>
  typeof headers["get"] === "function";

/** Null if the body is not an event. Drops unknown fields, which later versions may add. */
function parseEvent(rawBody: Uint8Array | string): WebhookEvent | null {
  const body = parseJson(rawBody);
  if (!isRecord(body)) return null;
  const { created_at, data, id, org_id, type } = body;
  if (!isText(id) || !isText(type) || !isText(org_id) || !isRecord(data)) return null;
  if (!isText(created_at) || Number.isNaN(Date.parse(created_at))) return null;
  const optional: Partial<Record<OptionalField, string>> = {};
  for (const field of OPTIONAL_FIELDS) {
    const value = body[field];
    if (value === undefined) continue;
    if (typeof value !== "string") return null;
    optional[field] = value;
  }
  return { id, type, created_at, org_id, ...optional, data };
}

const OPTIONAL_FIELDS = ["project_id", "team_id", "agent_id", "agent_name"] as const;
type OptionalField = (typeof OPTIONAL_FIELDS)[number];

function parseJson(rawBody: Uint8Array | string): unknown {
  try {
    const text =
      typeof rawBody === "string"
        ? rawBody
        : // What is not UTF-8 is refused rather than mended.
          new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(rawBody);
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
