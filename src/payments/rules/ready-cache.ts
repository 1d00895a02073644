/** Approximate maximum size of one cache, whatever the number of tenants and the size of their lists. */
const READY_BYTES_MAX = 32_000_000;

/** Overhead of a rule and of an entry in addition to their text. */
const RULE_BYTES = 300;
const ENTRY_BYTES = 100;
const BYTES_PER_UNIT = 2;

interface CacheEntry<T> {
  readonly value: T;
  readonly bytes: number;
}

/** Returns the texts that a value keeps to judge by: any number of lists for each of its rules. */
type TextsOf<T> = (value: T) => readonly (readonly Iterable<string>[])[];

/** LRU cache of rules or restrictions prepared for judging, by content hash. */
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
    // A map iterates over its keys in insertion order.
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
