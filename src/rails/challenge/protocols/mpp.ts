import { z } from "zod";
import { getAddress, keccak256, stringToBytes } from "viem";
import { caip2Of } from "../../../chain/config.ts";
import {
  type Authorization,
  authorizationFields,
  type Fetched,
  type Frame,
  headerOf,
  isReadable,
  type Judged,
  parsedJson,
  type PaymentHeader,
  priced,
  type TokenTerms,
  unpayable,
} from "./offer.ts";

/**
 * The Machine Payments Protocol: `evm/charge` with an ERC-3009 authorization, requested by `WWW-Authenticate: Payment`.
 */

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);

const charge = z.looseObject({
  amount: z.string().regex(/^[0-9]{1,30}$/),
  currency: address,
  recipient: address,
  methodDetails: z.looseObject({
    chainId: z.number(),
    credentialTypes: z.array(z.string()).optional(),
    splits: z.array(z.unknown()).optional(),
  }),
});

/** Validity of an authorization in seconds if the challenge does not expire. */
const TIMEOUT_SECONDS = 300;

const fromBase64Url = (text: string): unknown => parsedJson(Buffer.from(text, "base64url").toString("utf8"));

/** The offers of a 402; a header may hold several challenges. `now`: epoch milliseconds. */
export function offersMpp(fetched: Fetched, terms: TokenTerms, now: number): readonly Judged[] {
  const header = headerOf(fetched, "www-authenticate");
  if (header === null) return [];
  if (!isReadable(header)) return [unpayable("its challenge is too large")];
  return challengesIn(header).map((challenge) => judged(challenge, terms, now));
}

type Challenge = ReadonlyMap<string, string>;

function judged(challenge: Challenge, terms: TokenTerms, now: number): Judged {
  const field = (name: string): string => challenge.get(name) ?? "";
  if (field("method") !== "evm" || field("intent") !== "charge") return unpayable("it wants another method");
  const [id, realm, encoded] = [field("id"), field("realm"), field("request")];
  const request = charge.safeParse(fromBase64Url(encoded));
  if (!request.success || id === "" || realm === "") return unpayable("its challenge can't be read");
  if (challenge.has("header")) return unpayable("it wants the payment in another header");
  const { amount, currency, methodDetails, recipient } = request.data;
  if (methodDetails.chainId !== terms.chainId) return unpayable("it wants another chain");
  if ((methodDetails.splits ?? []).length > 0) return unpayable("it splits the price among several payees");
  if (methodDetails.credentialTypes?.includes("authorization") !== true)
    return unpayable("it takes no authorization");
  const price = priced({ asset: currency, payTo: recipient, units: amount }, terms);
  if (typeof price === "string") return unpayable(price);
  const expires = field("expires");
  const timeoutSeconds = expires === "" ? TIMEOUT_SECONDS : Math.floor((Date.parse(expires) - now) / 1_000);
  if (!(timeoutSeconds > 0)) return unpayable("its challenge has expired");
  const echoed = Object.fromEntries([...challenge].filter(([name]) => ECHOED.has(name)));
  const frame = { protocol: "mpp", challenge: echoed, chainId: terms.chainId } as const;
  return { frame, ...price, timeoutSeconds, nonce: keccak256(stringToBytes(`${id}${realm}`)) };
}

export function presented(
  { chainId, challenge }: Extract<Frame, { protocol: "mpp" }>,
  authorization: Authorization,
): PaymentHeader {
  const { from, signature } = authorization;
  const payload = { ...authorizationFields(authorization), signature, type: "authorization" };
  const source = `did:pkh:${caip2Of(chainId)}:${getAddress(from)}`;
  const credential = Buffer.from(JSON.stringify({ challenge, payload, source }));
  return { name: "authorization", value: `Payment ${credential.toString("base64url")}` };
}

const ECHOED: ReadonlySet<string> = new Set([
  "id",
  "realm",
  "method",
  "intent",
  "request",
  "description",
  "digest",
  "expires",
  "opaque",
]);

/** Matches a scheme's name at the header's beginning or after a comma, if a parameter follows. */
const SCHEME = /(?:^|,)\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s+(?=[0-9A-Za-z_-]+\s*=)/y;
/** Begins with an optional comma so that spaces match in one way: two ways would take quadratic time. */
const PARAMETER = /(?:\s*,)?\s*([0-9A-Za-z_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/y;

/** Returns the challenges of the scheme `Payment`, up to the first unreadable part. */
function challengesIn(header: string): readonly Challenge[] {
  const challenges: Map<string, string>[] = [];
  let current: Map<string, string> | null = null;
  let at = 0;
  while (at < header.length) {
    SCHEME.lastIndex = at;
    const scheme = SCHEME.exec(header);
    if (scheme !== null) {
      current = scheme[1]?.toLowerCase() === "payment" ? new Map<string, string>() : null;
      if (current !== null) challenges.push(current);
      at = SCHEME.lastIndex;
    }
    PARAMETER.lastIndex = at;
    const parameter = PARAMETER.exec(header);
    if (parameter === null) break;
    const [, name = "", quoted, token = ""] = parameter;
    const key = name.toLowerCase();
    // Parsers disagree about a repeated parameter, so none of the challenges is used.
    if (current?.has(key) === true) return [];
    current?.set(key, quoted === undefined ? token : unescaped(quoted));
    at = PARAMETER.lastIndex;
  }
  return challenges;
}

const unescaped = (text: string): string =>
  text.replaceAll(/\\(?:u([0-9A-Fa-f]{4})|(.))/g, (_all, code?: string, character = "") =>
    code === undefined ? character : String.fromCharCode(Number.parseInt(code, 16)),
  );

/** The shop's receipt, as JSON. */
export function receiptIn(fetched: Pick<Fetched, "headers">): string | null {
  const header = headerOf(fetched, "payment-receipt");
  if (header === null || !isReadable(header)) return null;
  const receipt = z.looseObject({ status: z.literal("success") }).safeParse(fromBase64Url(header));
  return receipt.success ? JSON.stringify(receipt.data) : null;
}
