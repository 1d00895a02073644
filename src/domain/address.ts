import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/** An address on an EVM chain: 20 bytes in hex, all lower case, or in mixed case with its EIP-55 checksum. */
export function isAddress(value: string): boolean {
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) return false;
  const digits = value.slice(2);
  const lower = digits.toLowerCase();
  return digits === lower || digits === checksummed(lower);
}

/** An address as it is shown and compared: with its checksum, however it was given. */
export const withChecksum = (address: string): string => `0x${checksummed(address.slice(2).toLowerCase())}`;

function checksummed(lower: string): string {
  const hash = bytesToHex(keccak_256(utf8ToBytes(lower)));
  return Array.from(lower)
    .map((digit, at) => (parseInt(hash.charAt(at), 16) >= 8 ? digit.toUpperCase() : digit))
    .join("");
}
