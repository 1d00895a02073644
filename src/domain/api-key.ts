/**
 * The value of an API key, of an agent or an organization.
 *
 * `<prefix><40 random base62 characters><6 characters of checksum>`: a secret scanner can distinguish a real key from a
 * look-alike, and a mistyped one is refused before any look-up. Pure: randomness is an argument.
 */

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** An agent's key spends; an organization's key provisions and supervises. */
export const API_KEY_PREFIXES = {
  agent: "sk_svc_live_",
  organization: "svc_org_live_",
} as const satisfies Record<string, string>;

export type ApiKeyKind = keyof typeof API_KEY_PREFIXES;

const KINDS: readonly ApiKeyKind[] = ["agent", "organization"];

/** 40 base62 characters carry 238.2 bits. */
const RANDOM_LENGTH_CHARACTERS = 40;
const CHECKSUM_LENGTH_CHARACTERS = 6;
const BODY = new RegExp(`^[0-9A-Za-z]{${RANDOM_LENGTH_CHARACTERS + CHECKSUM_LENGTH_CHARACTERS}}$`);

/** Bytes from this value on are discarded: they would make the first letters of the alphabet more likely. */
const UNBIASED_BYTE_LIMIT = 256 - (256 % ALPHABET.length);
const DRAW_SIZE_BYTES = 64;
/** Maximum draws. 3 % of the bytes are discarded, so a source that needs a third draw is almost certainly broken. */
const MAX_DRAWS = 16;

export type RandomBytes = (sizeBytes: number) => Uint8Array;

export function formatApiKey(kind: ApiKeyKind, randomBytes: RandomBytes): string {
  const payload = API_KEY_PREFIXES[kind] + randomBase62(RANDOM_LENGTH_CHARACTERS, randomBytes);
  return payload + checksum(payload);
}

/** Returns the kind of a well-formed key value, or null. Does not tell whether the key was ever issued. */
export function classifyApiKey(value: string): ApiKeyKind | null {
  const kind = KINDS.find((each) => value.startsWith(API_KEY_PREFIXES[each]));
  if (kind === undefined || !BODY.test(value.slice(API_KEY_PREFIXES[kind].length))) return null;
  const payload = value.slice(0, -CHECKSUM_LENGTH_CHARACTERS);
  return checksum(payload) === value.slice(-CHECKSUM_LENGTH_CHARACTERS) ? kind : null;
}

/** Returns the part of a key that a record may show. */
export const last4 = (value: string): string => value.slice(-4);

function randomBase62(lengthCharacters: number, randomBytes: RandomBytes): string {
  let text = "";
  for (let draw = 0; draw < MAX_DRAWS; draw += 1) {
    for (const byte of randomBytes(DRAW_SIZE_BYTES)) {
      if (byte >= UNBIASED_BYTE_LIMIT) continue;
      text += ALPHABET.charAt(byte % ALPHABET.length);
      if (text.length === lengthCharacters) return text;
    }
  }
  throw new Error("The source of random bytes does not look random.");
}

/** Returns the CRC-32 of the text in base 62. Keys are ASCII, so a character is a byte. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  while (rest > 0) {
    digits = ALPHABET.charAt(rest % ALPHABET.length) + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits.padStart(CHECKSUM_LENGTH_CHARACTERS, "0");
}

const CRC_TABLE: readonly number[] = Array.from({ length: 256 }, (_, index) => {
  let remainder = index;
  for (let bit = 0; bit < 8; bit += 1) {
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1;
  }
  return remainder >>> 0;
});

/**
 * Computes CRC-32 (IEEE polynomial) by table: node:zlib has it only from Node 22, and the domain imports no builtin.
 */
function crc32(text: string): number {
  let remainder = 0xffffffff;
  for (let index = 0; index < text.length; index += 1) {
    remainder = (remainder >>> 8) ^ (CRC_TABLE[(remainder ^ text.charCodeAt(index)) & 0xff] ?? 0);
  }
  return (remainder ^ 0xffffffff) >>> 0;
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const [DASH, ZERO, NINE, LETTER_A] = [0x2d, 0x30, 0x39, 0x61];
/** Spare bits of a ULID: it has 130, a UUID 128. */
const ULID_SPARE_BITS = 2;

/**
 * Returns the id of the key that an agent is created with, derived from the agent's id, so that repeated creates yield
 * the same key. Sorts by time like other ids, since a version 7 UUID begins with its time as a ULID does.
 */
export function firstKeyId(agentId: string): string {
  let digits = "";
  let rest = 0;
  let restBits = ULID_SPARE_BITS;
  for (let place = 0; place < agentId.length; place += 1) {
    const code = agentId.charCodeAt(place);
    if (code === DASH) continue;
    rest = (rest << 4) | (code <= NINE ? code - ZERO : code - LETTER_A + 10);
    restBits += 4;
    if (restBits < 5) continue;
    restBits -= 5;
    digits += CROCKFORD.charAt(rest >>> restBits);
    rest &= (1 << restBits) - 1;
  }
  return `akey_${digits}`;
}
