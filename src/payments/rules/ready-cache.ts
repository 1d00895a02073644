/** Approximate bound of one cache, so that no number of tenants, with lists as large as they may be, takes more. */
const READY_BYTES_MAX = 32_000_000;

/** Size of a rule and of an entry besides their text. */
const RULE_BYTES = 300;
const ENTRY_BYTES = 100;
const BYTES_PER_UNIT = 2;

interface CacheEntry<T> {
  readonly value: T;
  readonly bytes: number;
}

/** Texts that a value keeps to judge by: of each of its rules, in any number of lists. */
type TextsOf<T> = (value: T) => readonly (readonly Iterable<string>[])[];

/** Rules or restrictions that are ready to judge payments, by the hash of what they say; those that were used last. */
export class ReadyCache<T> {
  readonly #entries = new Map<string, CacheEntry<T>>();
  readonly #textsOf: TextsOf<T>;
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(textsOf: TextsOf<T>, bytesMax = READY_BYTES_MAX) {
    this.#textsOf = textsOf;
    this.#bytesMax = bytesMax;
  }

  get(contentHash: string): T | undefined {
    const entry = this.#entries.get(contentHash);
    if (entry === undefined) return undefined;
    this.#entries.delete(contentHash);
    this.#entries.set(contentHash, entry);
    return entry.value;
  }

  set(contentHash: string, value: T): void {
    this.#forget(contentHash);
    const bytes = this.#textsOf(value).reduce((sum, texts) => sum + bytesOf(texts), RULE_BYTES);
    this.#entries.set(contentHash, { value, bytes });
    this.#bytes += bytes;
    // A map goes through its keys in the order in which they were set.
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(contentHash: string): void {
    this.#bytes -= this.#entries.get(contentHash)?.bytes ?? 0;
    this.#entries.delete(contentHash);
  }
}

function bytesOf(texts: readonly Iterable<string>[]): number {
  let bytes = RULE_BYTES;
  for (const each of texts) for (const text of each) bytes += ENTRY_BYTES + BYTES_PER_UNIT * text.length;
  return bytes;
}
