import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_CHARACTERS = 10;
const HASH_CHARACTERS = 16;
const HASH_HEX_CHARACTERS = 20;

/**
 * The id of an event's delivery to an endpoint: it follows from both, so that however often a delivery is created, it is one.
 * It sorts by the event's time, in epoch milliseconds, as other ids do.
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
