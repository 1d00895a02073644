/**
 * Encodes numbers, ids and hashes in as few bits as possible, as text of 64 characters; the compression that follows
 * needs six bits for each. A form is described once, as a function of a `Coder`, from which writing, reading and
 * measuring follow.
 */

/** A writer writes each value and returns it; a reader ignores the argument and returns the value read. */
export interface Coder {
  /** Codes a whole number of up to 53 bits, in its own bits plus six. */
  number(value: number): number;
  /** Codes a whole number that is mostly near 0: twice the bits that it has beyond `order`, plus `order` and one. */
  small(value: number, order?: number): number;
  flag(value: boolean): boolean;
  /** Codes an id or a hash; one of an unknown form is stored as text. */
  token(value: string): string;
  text(value: string): string;
  /** Copies bits that another writer has written, without decoding them. */
  written(value: string): string;
  /** Codes a part that counts as at least so many bits. */
  reserving<T>(bits: number, code: () => T): T;
}

/** Maps a signed whole number to a non-negative one; `unfolded` is the inverse. */
export const folded = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);
export function unfolded(value: number): number {
  const half = Math.floor(value / 2);
  return half * 2 === value ? half : -half - 1;
}

/** Bits of a number's length prefix. */
const LENGTH_BITS = 6;
/** Bits per word: a whole number of characters, with room for shifts in 32 bits. */
const WORD_BITS = 24;
const CHARACTER_BITS = 6;

/** Separates separately written bits. */
export const SEPARATOR = ".";
const SEPARATOR_BITS = 8;
const bitsOfWritten = (value: string): number => value.length * CHARACTER_BITS + SEPARATOR_BITS;

/** Precomputed powers of two: computing them would cost more than the rest. */
const POWERS: readonly number[] = Array.from({ length: 64 }, (_value, exponent) => 2 ** exponent);
const power = (exponent: number): number => POWERS[exponent] ?? 1;

export function bitLength(value: number): number {
  const high = Math.floor(value / power(32));
  return high > 0 ? 64 - Math.clz32(high) : 32 - Math.clz32(value);
}

abstract class Writing implements Coder {
  readonly texts: string[] = [];
  /** Bits that other writers have written. */
  readonly copied: string[] = [];

  /** Appends up to one word. */
  protected abstract put(value: number, count: number): void;

  #bits(value: number, count: number): void {
    if (count <= WORD_BITS) return this.put(value, count);
    const low = power(count - WORD_BITS);
    this.put(Math.floor(value / low) % power(WORD_BITS), WORD_BITS);
    this.#bits(value % low, count - WORD_BITS);
  }

  number(value: number): number {
    const length = bitLength(value);
    this.put(length, LENGTH_BITS);
    this.#bits(value, length);
    return value;
  }

  small(value: number, order = 0): number {
    const raised = value + power(order);
    const length = bitLength(raised);
    const zeros = length - 1 - order;
    if (zeros + length <= WORD_BITS) this.put(raised, zeros + length);
    else {
      this.#bits(0, zeros);
      this.#bits(raised, length);
    }
    return value;
  }

  flag(value: boolean): boolean {
    this.put(value ? 1 : 0, 1);
    return value;
  }

  token(value: string): string {
    const place = formOf(value);
    this.put(place + 1, TAG_BITS);
    const form = FORMS[place];
    if (form === undefined) return this.text(value);
    const { bits, from, separator, values } = form;
    const digitsAtOnce = Math.floor(WORD_BITS / bits);
    let [digits, word] = [0, 0];
    for (let index = from; index < value.length; index += 1) {
      const code = value.charCodeAt(index);
      if (code === separator) continue;
      word = (word << bits) | (values[code] ?? 0);
      digits += 1;
      if (digits % digitsAtOnce === 0) {
        this.put(word, digitsAtOnce * bits);
        word = 0;
      }
    }
    this.put(word, (digits % digitsAtOnce) * bits);
    return value;
  }

  text(value: string): string {
    this.texts.push(value);
    return value;
  }

  written(value: string): string {
    this.copied.push(value);
    return value;
  }

  reserving<T>(_bits: number, code: () => T): T {
    return code();
  }
}

export class BitWriter extends Writing {
  readonly #words: string[] = [];
  #rest = 0;
  #restBits = 0;

  get all(): string {
    const rest = wordText(this.#rest << (WORD_BITS - this.#restBits));
    return this.#words.join("") + rest.slice(0, Math.ceil(this.#restBits / CHARACTER_BITS));
  }

  protected put(value: number, count: number): void {
    const left = this.#restBits + count - WORD_BITS;
    if (left < 0) {
      this.#rest = (this.#rest << count) | value;
      this.#restBits += count;
      return;
    }
    this.#words.push(wordText((this.#rest << (count - left)) | (value >>> left)));
    this.#rest = value & (power(left) - 1);
    this.#restBits = left;
  }
}

/** Measures what a writer would write. */
export class BitMeter extends Writing {
  bitCount = 0;

  override written(value: string): string {
    this.bitCount += bitsOfWritten(value);
    return value;
  }

  override reserving<T>(bits: number, code: () => T): T {
    const reserved = this.bitCount + bits;
    const coded = code();
    this.bitCount = Math.max(this.bitCount, reserved);
    return coded;
  }

  protected put(_value: number, count: number): void {
    this.bitCount += count;
  }
}

export class BitReader implements Coder {
  readonly #written: string;
  readonly #texts: readonly string[];
  readonly #copied: readonly string[];
  #character = 0;
  #text = 0;
  #copy = 0;
  #rest = 0;
  #restBits = 0;
  bitCount = 0;

  constructor(written: string, texts: readonly string[] = [], copied: readonly string[] = []) {
    this.#written = written;
    this.#texts = texts;
    this.#copied = copied;
  }

  number(_value: number): number {
    return this.#bits(this.#take(LENGTH_BITS));
  }

  small(_value: number, order = 0): number {
    let length = order;
    while (this.#take(1) === 0) length += 1;
    return power(length) + this.#bits(length) - power(order);
  }

  flag(_value: boolean): boolean {
    return this.#take(1) === 1;
  }

  token(_value: string): string {
    const form = FORMS[this.#take(TAG_BITS) - 1];
    if (form === undefined) return this.text("");
    const { alphabet, bits, groupDigits, groups } = form;
    let [digits, left] = ["", form.digits];
    for (; left >= groupDigits; left -= groupDigits) digits += groups[this.#take(groupDigits * bits)] ?? "";
    for (; left > 0; left -= 1) digits += alphabet.charAt(this.#take(bits));
    return form.token(digits);
  }

  text(_value: string): string {
    this.#text += 1;
    return this.#texts[this.#text - 1] ?? "";
  }

  written(_value: string): string {
    const written = this.#copied[this.#copy] ?? "";
    this.#copy += 1;
    this.bitCount += bitsOfWritten(written);
    return written;
  }

  reserving<T>(bits: number, code: () => T): T {
    const reserved = this.bitCount + bits;
    const coded = code();
    this.bitCount = Math.max(this.bitCount, reserved);
    return coded;
  }

  #bits(count: number): number {
    if (count <= WORD_BITS) return this.#take(count);
    const high = this.#take(WORD_BITS);
    return high * power(count - WORD_BITS) + this.#bits(count - WORD_BITS);
  }

  /** Reads up to one word. */
  #take(count: number): number {
    this.bitCount += count;
    const left = this.#restBits - count;
    if (left < 0) return this.#takeAcross(count);
    const value = this.#rest >>> left;
    this.#rest &= power(left) - 1;
    this.#restBits = left;
    return value;
  }

  #takeAcross(count: number): number {
    const missing = count - this.#restBits;
    const left = WORD_BITS - missing;
    const word = this.#nextWord();
    const value = (this.#rest << missing) | (word >>> left);
    this.#rest = word & (power(left) - 1);
    this.#restBits = left;
    return value;
  }

  #nextWord(): number {
    const from = this.#character;
    const digit = (place: number): number => SIXTY_FOUR_VALUES[this.#written.charCodeAt(from + place)] ?? 0;
    if (from >= this.#written.length) throw new Error("packed bits end too early");
    this.#character += WORD_BITS / CHARACTER_BITS;
    return (digit(0) << 18) | (digit(1) << 12) | (digit(2) << 6) | digit(3);
  }
}

const SIXTY_FOUR = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const HEX = "0123456789abcdef";
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Returns the value of each digit, indexed by its character code. */
function valuesIn(alphabet: string): readonly number[] {
  const values = Array.from({ length: 128 }, () => 0);
  for (let value = 0; value < alphabet.length; value += 1) values[alphabet.charCodeAt(value)] = value;
  return values;
}
const SIXTY_FOUR_VALUES = valuesIn(SIXTY_FOUR);

/** Returns all texts of `digits` digits, in order. */
const groupsOf = (alphabet: string, digits: number): readonly string[] =>
  digits === 0
    ? [""]
    : groupsOf(alphabet, digits - 1).flatMap((group) => alphabet.split("").map((digit) => group + digit));

const HALVES = groupsOf(SIXTY_FOUR, 2);
const wordText = (word: number): string => (HALVES[word >>> 12] ?? "") + (HALVES[word & 0xfff] ?? "");

/** A form of ids or hashes: a fixed number of digits of an alphabet. */
interface Form {
  readonly is: RegExp;
  readonly size: number;
  /** Index of the first digit, and the character code of the separator. */
  readonly from: number;
  readonly separator: number;
  readonly digits: number;
  readonly alphabet: string;
  readonly values: readonly number[];
  readonly bits: number;
  /** Number of digits read at once. */
  readonly groupDigits: number;
  readonly groups: readonly string[];
  readonly token: (digits: string) => string;
}

const TAG_BITS = 2;
const DASH = "-".charCodeAt(0);
const NO_SEPARATOR = -1;
const KEY_PREFIX = "akey_";

const FORMS: readonly Form[] = [
  {
    is: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
    size: 36,
    from: 0,
    separator: DASH,
    digits: 32,
    alphabet: HEX,
    values: valuesIn(HEX),
    bits: 4,
    groupDigits: 3,
    groups: groupsOf(HEX, 3),
    token: (text) =>
      `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`,
  },
  {
    is: /^akey_[0-9A-HJKMNP-TV-Z]{26}$/,
    size: 31,
    from: KEY_PREFIX.length,
    separator: NO_SEPARATOR,
    digits: 26,
    alphabet: CROCKFORD,
    values: valuesIn(CROCKFORD),
    bits: 5,
    groupDigits: 2,
    groups: groupsOf(CROCKFORD, 2),
    token: (text) => KEY_PREFIX + text,
  },
  {
    is: /^[A-Za-z0-9_-]{22}$/,
    size: 22,
    from: 0,
    separator: NO_SEPARATOR,
    digits: 22,
    alphabet: SIXTY_FOUR,
    values: SIXTY_FOUR_VALUES,
    bits: 6,
    groupDigits: 2,
    groups: HALVES,
    token: (text) => text,
  },
];

const formOf = (token: string): number =>
  FORMS.findIndex(({ is, size }) => token.length === size && is.test(token));

export const isCoded = (token: string): boolean => formOf(token) >= 0;
