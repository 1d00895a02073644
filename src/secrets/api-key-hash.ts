import { timingSafeEqual } from "node:crypto";
import { hmacSha256, type MasterKey } from "./master-key.ts";

/**
 * What is stored of an API key: an HMAC-SHA-256 with a pepper held outside MongoDB. Keyed and of one length, so that the timing
 * of a look-up in a unique index discloses nothing about a value.
 */
export const hashApiKey = (masterKey: MasterKey, value: string): string =>
  hmacSha256(masterKey.deriveKey("api-key-pepper"), value);

/** Compares two hashes in constant time: an index match is not trusted to be the presented value. */
export function isSameHash(left: string, right: string): boolean {
  const [first, second] = [Buffer.from(left), Buffer.from(right)];
  return first.length === second.length && timingSafeEqual(first, second);
}
