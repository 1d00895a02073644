import { createSecretKey } from "node:crypto";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import {
  type AuditEntry,
  type AuditHead,
  type AuditRecord,
  type AuditSeal,
  link,
  linkAll,
  NO_ENTRY,
} from "../../src/domain/audit/entry.ts";
import { type AnchoredHashes, type ChainBreak, ChainVerifier } from "../../src/domain/audit/verify.ts";

/** A chain in memory as the store has it, and what an intruder who can write to the store may do to it. */

const sealUnder = (text: string): AuditSeal =>
  auditSeal([{ key: createSecretKey(text.padEnd(32, "."), "utf8"), retiredAt: null }]);

export const seal = sealUnder("the service's");
/** Another's, who has no part in the service's key. */
export const foreignSeal = sealUnder("a stranger's");

export type Fields = Readonly<Record<string, unknown>>;

const ORGANIZATION = "01a1fedc-b36f-716a-9ab4-93fd85fe3900";

/** The record of something ordinary. */
export const recordOf = (number: number): AuditRecord => ({
  organizationId: ORGANIZATION,
  entryKey: `req_${number}`,
  at: Date.UTC(2026, 0, 1) + number * 1_000,
  action: "updateAgentBudgetPolicy",
  actor: { type: "user", id: `user-${number % 3}`, sessionId: `session-${number}`, name: "Ünïcode 🦊" },
  resource: { type: "agent", id: `agent-${number % 5}` },
  from: { address: "192.0.2.1", surface: "rest", via: "PATCH /v1/agents/:id/budget-policy" },
  result: { status: 200, code: null },
  before: { budgetCents: number, limits: [1, null, { deep: true }] },
  after: { budgetCents: number + 1, limits: [] },
  decision: null,
});

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_none, index) => make(index));

export const chainOf = (length: number): Fields[] =>
  linkAll(
    times(length, (index) => recordOf(index + 1)),
    NO_ENTRY,
    seal,
  ).map(stored);

/** As the store gives it back, in another order of fields. */
export function stored({ at, ...entry }: AuditEntry): Fields {
  return { ...Object.fromEntries(Object.entries(entry).toReversed()), at: new Date(at).toISOString() };
}

/** The record that an entry was made of. */
function recordIn(fields: Fields): AuditRecord {
  const { hash: _h, mac: _m, version: _v, sequence: _s, previousHash: _p, at, ...rest } = fields;
  return { ...(rest as Omit<AuditRecord, "at">), at: Date.parse(String(at)) };
}

/** Numbers and links anew from an entry on, as well as an intruder can who has a key. */
export function relinked(chain: readonly Fields[], from: number, by: AuditSeal): Fields[] {
  const kept = chain.slice(0, from);
  let head = headOf(kept);
  const rest = chain.slice(from).map((fields) => {
    const entry = link(recordIn(fields), head, by);
    head = entry;
    return stored(entry);
  });
  return [...kept, ...rest];
}

/** New places for all behind, without touching their hashes. */
export const renumbered = (chain: readonly Fields[]): Fields[] =>
  chain.map((fields, index) => ({ ...fields, sequence: index + 1 }));

export function headOf(chain: readonly Fields[]): AuditHead {
  const last = chain.at(-1);
  return last === undefined ? NO_ENTRY : { sequence: chain.length, hash: String(last["hash"]) };
}

/** What an anchor of the chain's end says. */
export const anchorOf = (chain: readonly Fields[]): AnchoredHashes => {
  const { hash, sequence } = headOf(chain);
  return new Map([[sequence, [hash]]]);
};

/** Walks a chain whose entries lie at the places that they name. */
export function verdictOn(chain: readonly Fields[], anchors?: AnchoredHashes): ChainBreak | null {
  const verifier = new ChainVerifier(seal, anchors);
  for (const fields of chain) verifier.take({ position: Number(fields["sequence"]), fields });
  return verifier.end();
}

/** `set(entry, ["before", "budgetCents"], 5)` */
export function withField(fields: Fields, [name = "", ...path]: readonly string[], value: unknown): Fields {
  if (path.length === 0) return { ...fields, [name]: value };
  return { ...fields, [name]: withField((fields[name] ?? {}) as Fields, path, value) };
}
