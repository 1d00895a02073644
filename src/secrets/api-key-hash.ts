import { timingSafeEqual } from "node:crypto";
import { hmacSha256, type MasterKey } from "./master-key.ts";

/**
 * What is stored of an API key: an HMAC-SHA-256 with a pepper held outside MongoDB. Keyed and
 * of one length, so that a look-up by it in a unique index tells nothing about a value by its timing.
 */
export const hashApiKey = (masterKey: MasterKey, value: string): string =>
  hmacSha256(masterKey.deriveKey("api-key-pepper"), value);

/** Compares two hashes in constant time: what an index found is not taken for the value that was asked for. */
export function isSameHash(left: string, right: string): boolean {
  const [first, second] = [Buffer.from(left), Buffer.from(right)];
  return first.length === second.length && timingSafeEqual(first, second);
}
