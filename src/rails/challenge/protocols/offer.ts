import { type Address, getAddress, type Hex, zeroAddress } from "viem";
import { MAX_MC } from "../../../domain/money.ts";

/** The protocols by which shops ask for payment with HTTP 402, as pure functions of the fetched answer. */

/** The paying token as the service knows it. A shop's statements about it do not count. */
export interface TokenTerms {
  readonly chainId: number;
  readonly token: Address;
  readonly decimals: number;
  /** Name of the token's EIP-712 domain. */
  readonly name: string;
  readonly version: string;
}

export interface Fetched {
  readonly url: string;
  readonly httpStatus: number;
  /** Keyed by lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
}

/** A signed ERC-3009 authorization. */
export interface Authorization {
  readonly from: Address;
  readonly to: Address;
  readonly units: bigint;
  /** Epoch seconds, as is `validBefore`. */
  readonly validAfter: number;
  readonly validBefore: number;
  readonly nonce: Hex;
  readonly signature: Hex;
}

/** Parts of the challenge that are sent back to the shop with the authorization. */
export type Frame =
  | {
      readonly protocol: "x402/2";
      readonly accepted: unknown;
      readonly resource?: unknown;
      readonly extensions?: unknown;
    }
  | { readonly protocol: "x402/1"; readonly scheme: string; readonly network: string }
  | {
      readonly protocol: "mpp";
      readonly challenge: Readonly<Record<string, string>>;
      readonly chainId: number;
    };

/** A price at which a shop delivers. */
export interface Offer {
  readonly frame: Frame;
  readonly payTo: Address;
  readonly units: bigint;
  /** Thousandths of a cent, rounded up. */
  readonly amountMc: number;
  /** Seconds for which the shop wants the authorization to be valid. */
  readonly timeoutSeconds: number;
  /** The nonce that the shop requires; null if the service chooses. */
  readonly nonce: Hex | null;
}

export interface PaymentHeader {
  readonly name: string;
  readonly value: string;
}

export type Judged = Offer | { readonly unpayable: string };

export const unpayable = (why: string): Judged => ({ unpayable: why });

const CHALLENGE_MAX_BYTES = 16 * 1_024;

export const isReadable = (text: string): boolean => Buffer.byteLength(text) <= CHALLENGE_MAX_BYTES;

const MC_PER_TOKEN = 100_000n;

/**
 * Converts token units to thousandths of a cent, rounded up. Null if the result is zero or above any payment's maximum.
 */
export function mcOfUnits(units: bigint, decimals: number): number | null {
  const perToken = 10n ** BigInt(decimals);
  const mc = (units * MC_PER_TOKEN + perToken - 1n) / perToken;
  return mc > 0n && mc <= BigInt(MAX_MC) ? Number(mc) : null;
}

/** Payment terms common to all protocols' offers. */
interface Named {
  readonly asset: string;
  readonly payTo: string;
  readonly units: string;
}

/** Returns the common part of an offer in the service's own token, or a text that says why there is none. */
export function priced(
  { asset, payTo, units }: Named,
  { decimals, token }: TokenTerms,
): Pick<Offer, "payTo" | "units" | "amountMc"> | string {
  if (asset.toLowerCase() !== token.toLowerCase()) return "it wants another token";
  const to = getAddress(payTo);
  if (to === zeroAddress || to.toLowerCase() === token.toLowerCase()) return "it pays to no one";
  const amountMc = mcOfUnits(BigInt(units), decimals);
  return amountMc === null ? "its price can't be paid" : { payTo: to, units: BigInt(units), amountMc };
}

export const authorizationFields = ({ from, nonce, to, units, validAfter, validBefore }: Authorization) => ({
  from,
  to,
  value: String(units),
  validAfter: String(validAfter),
  validBefore: String(validBefore),
  nonce,
});

/** Returns the header's only value; null if it is missing or repeated. */
export function headerOf({ headers }: Pick<Fetched, "headers">, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" ? value : null;
}

/** Maximum depth of JSON that is kept, and so written again by functions that recurse. */
const DEPTH_MAX = 50;

/** Returns the value of JSON; null if it can't be read or is nested too deeply. */
export function parsedJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isDeep(value) ? null : value;
  } catch {
    return null;
  }
}

function isDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; depth < DEPTH_MAX; depth += 1) {
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}
