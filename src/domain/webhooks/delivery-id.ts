import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_CHARACTERS = 10;
const HASH_CHARACTERS = 16;
const HASH_HEX_CHARACTERS = 20;

/**
 * Returns the id of an event's delivery to an endpoint, derived from both, so that repeated creation yields one
 * delivery. Sorts by the event's time, in epoch milliseconds, like other ids.
 */
export function deliveryId(eventId: string, endpointId: string, at: number): string {
  const hash = bytesToHex(sha256(utf8ToBytes(`${endpointId}\n${eventId}`))).slice(0, HASH_HEX_CHARACTERS);
  return `dlv_${crockford(BigInt(at), TIME_CHARACTERS)}${crockford(BigInt(`0x${hash}`), HASH_CHARACTERS)}`;
}

function crockford(value: bigint, characters: number): string {
  let rest = value;
  let digits = "";
  while (digits.length < characters) {
    digits = CROCKFORD.charAt(Number(rest & 31n)) + digits;
    rest >>= 5n;
  }
  return digits;
}
