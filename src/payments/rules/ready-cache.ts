import type { ReadyRule } from "../../domain/rules/rules.ts";

/** About what all rules that are kept take, so that no number of tenants, with rules as large as they may be, takes more. */
const READY_RULES_BYTES_MAX = 32_000_000;

/** Size of a rule and of an entry besides their text. */
const RULE_BYTES = 300;
const ENTRY_BYTES = 100;
const BYTES_PER_UNIT = 2;

interface CacheEntry {
  readonly rules: readonly ReadyRule[];
  readonly bytes: number;
}

/** Sets of rules that are ready to judge payments, by the hash of what they say; those that were used last. */
export class ReadyRulesCache {
  readonly #entries = new Map<string, CacheEntry>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax = READY_RULES_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get(contentHash: string): readonly ReadyRule[] | undefined {
    const entries = this.#entries.get(contentHash);
    if (entries === undefined) return undefined;
    this.#entries.delete(contentHash);
    this.#entries.set(contentHash, entries);
    return entries.rules;
  }

  set(contentHash: string, rules: readonly ReadyRule[]): void {
    this.#forget(contentHash);
    const bytes = rules.reduce((sum, rule) => sum + bytesOf(rule), RULE_BYTES);
    this.#entries.set(contentHash, { rules, bytes });
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

function bytesOf(rule: ReadyRule): number {
  let bytes = RULE_BYTES;
  if (!("texts" in rule)) return bytes;
  for (const text of rule.texts ?? []) bytes += ENTRY_BYTES + BYTES_PER_UNIT * text.length;
  return bytes;
}
