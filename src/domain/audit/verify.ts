import { type AuditHead, type AuditSeal, hashedText, isMac, isSealed, NO_ENTRY } from "./entry.ts";

/** An entry as found in the store, with any fields, `at` as ISO text. */
export interface FoundEntry {
  /** Place according to the entry's id in the store; 0 if the id is not a place. */
  readonly position: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Defects of a chain: an entry was `changed`, `removed`, `inserted` or `moved` to another's place; an anchored entry
 * was `rewritten`; the end was cut off before an anchored entry (`cut_tail`).
 */
export type ChainProblem = "changed" | "removed" | "inserted" | "moved" | "rewritten" | "cut_tail";

/** The first defect of a chain. */
export interface ChainBreak {
  readonly sequence: number;
  readonly problem: ChainProblem;
  readonly detail: string;
}

/** Anchored hashes of heads, by sequence. A head that was anchored twice with different hashes has two. */
export type AnchoredHashes = ReadonlyMap<number, readonly string[]>;

/**
 * Returns the sequence of the last anchored entry. A loop, since there may be more entries than a call takes arguments.
 */
export function lastAnchored(anchors: AnchoredHashes): number {
  let last = 0;
  for (const sequence of anchors.keys()) last = Math.max(last, sequence);
  return last;
}

/** Placeholder for an entry's number in its canonical form; not a text that people write. */
const ANY_SEQUENCE = "\u0000sequence";

/** Maximum number of removed entries to search for, to tell a removal from a change. */
const RENUMBERED_MAX = 1_000;

/**
 * Verifies one chain, entry by entry from the first, and finds its first defect. Its only state is that of the walk:
 * the previous entry, and the expected continuation.
 */
export class ChainVerifier {
  readonly #seal: AuditSeal;
  readonly #anchors: AnchoredHashes;
  #pending: FoundEntry | null = null;
  #sequence: number;
  #hash: string;
  #broken: ChainBreak | null = null;
  #anchorsMet = 0;
  /** Latest instant of an accepted entry. */
  #latestAt = "";

  /** `behind` is the verified entry after which the walk begins. */
  constructor(seal: AuditSeal, anchors: AnchoredHashes = new Map(), behind: AuditHead = NO_ENTRY) {
    this.#seal = seal;
    this.#anchors = anchors;
    this.#sequence = behind.sequence;
    this.#hash = behind.hash;
  }

  /** Number of intact entries. */
  get checkedEntries(): number {
    return this.#sequence;
  }

  /** Number of anchors that the chain agrees with. */
  get checkedAnchors(): number {
    return this.#anchorsMet;
  }

  /** Takes the next entry, in the order of places. Returns the defect once there is one. */
  take(entry: FoundEntry): ChainBreak | null {
    const before = this.#pending;
    this.#pending = entry;
    if (before !== null) this.#judge(before, entry);
    return this.#broken;
  }

  /** Ends the walk, and returns the defect or null. */
  end(): ChainBreak | null {
    if (this.#pending !== null) this.#judge(this.#pending, null);
    this.#pending = null;
    const last = lastAnchored(this.#anchors);
    if (this.#broken === null && last > this.#sequence) {
      const missing = this.#sequence + 1;
      this.#break("cut_tail", `entry ${last} was anchored; the chain ends before entry ${missing}`, missing);
    }
    return this.#broken;
  }

  #judge({ fields, position }: FoundEntry, next: FoundEntry | null): void {
    if (this.#broken !== null) return;
    const expected = this.#sequence + 1;
    if (position < expected) {
      return this.#break("inserted", "an entry has an id that is not a position", expected);
    }
    if (position > expected) {
      const count = position - expected;
      return this.#break("removed", `${count === 1 ? "it is" : `${count} entries are`} missing`, expected);
    }
    if (!isSealed(fields, this.#seal)) return this.#explain(fields, next);
    if (fields["sequence"] !== expected) {
      const sequence = String(fields["sequence"]);
      return this.#break("moved", `entry ${sequence} has its position`, expected);
    }
    if (fields["previousHash"] !== this.#hash) {
      return this.#break(
        "rewritten",
        "it does not follow the previous entry, though both are genuine",
        expected,
      );
    }
    const sealing = this.#seal.sealingOf(String(fields["hash"]), String(fields["mac"]));
    const retiredAt = sealing?.retiredAt ?? null;
    if (retiredAt !== null && this.#latestAt > retiredAt) {
      return this.#break("inserted", "it was sealed with a master key that was retired before", expected);
    }
    const at = String(fields["at"]);
    if (at > this.#latestAt) this.#latestAt = at;
    this.#accept(expected, String(fields["hash"]));
  }

  #accept(sequence: number, hash: string): void {
    const anchored = this.#anchors.get(sequence) ?? [];
    if (anchored.some((each) => each !== hash)) {
      return this.#break("rewritten", "it is not the entry that was anchored", sequence);
    }
    this.#anchorsMet += anchored.length;
    this.#sequence = sequence;
    this.#hash = hash;
  }

  /** Determines the defect of an altered entry, as far as its neighbours show. */
  #explain(fields: FoundEntry["fields"], next: FoundEntry | null): void {
    const expected = this.#sequence + 1;
    const original = this.#originalSequence(fields);
    if (original !== null) {
      const isSwapped = next !== null && next.fields["previousHash"] === this.#hash;
      return isSwapped
        ? this.#break("moved", `entry ${original} has its position`, expected)
        : this.#break("removed", `entries are missing, and later ones were renumbered`, expected);
    }
    if (next !== null && next.fields["previousHash"] === this.#hash) {
      return this.#break("inserted", "the next entry follows the previous one", expected);
    }
    const isRehashed = fields["hash"] === this.#seal.hash(hashedText(fields));
    const detail = isRehashed
      ? "it was sealed without the service's key"
      : "its content does not match its hash";
    return this.#break("changed", detail, expected);
  }

  /** Returns the number under which a renumbered entry is intact; null if there is none. */
  #originalSequence(fields: FoundEntry["fields"]): number | null {
    const expected = this.#sequence + 1;
    const parts = hashedText({ ...fields, sequence: ANY_SEQUENCE }).split(JSON.stringify(ANY_SEQUENCE));
    const [before = "", after = ""] = parts;
    if (parts.length !== 2 || !isMac(this.#seal, String(fields["hash"]), fields["mac"], fields["at"]))
      return null;
    for (let more = 1; more <= RENUMBERED_MAX; more += 1) {
      const hash = this.#seal.hash(`${before}${expected + more}${after}`);
      if (fields["hash"] === hash) return expected + more;
    }
    return null;
  }

  #break(problem: ChainProblem, detail: string, sequence: number): void {
    this.#broken = { sequence, problem, detail };
  }
}
