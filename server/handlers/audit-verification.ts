import {
  chainRange,
  entryId,
  genuineHeadOf,
  isGenuine,
  positionedEntry,
  storedDocument,
  strayOf,
} from "../../src/store/audit-documents.ts";
import { strayBreak } from "../../src/audit/chain/verification.ts";
import { type AuditHead, NO_ENTRY } from "../../src/domain/audit/entry.ts";
import { type ChainBreak, ChainVerifier } from "../../src/domain/audit/verify.ts";
import { ok } from "../../src/domain/result.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Maximum entries verified in one call, and read at a time. Each takes some tens of microseconds of this thread. */
const ENTRIES_MAX = 5_000;
const AT_ONCE = 250;

/** Verifies the audit log without the command line. */
export function auditVerificationHandlers({
  auditSeal,
  collections: { auditLog },
  reads,
}: HandlerDependencies): Pick<Handlers, "verifyAuditLog"> {
  /** Returns the entry verified last, as it is now; null if it is not there as written. */
  async function behind(organizationId: string, after: number): Promise<AuditHead | null> {
    if (after === 0) return NO_ENTRY;
    const entry = await auditLog.findOne({ _id: entryId(organizationId, after) });
    if (entry === null || !isGenuine(entry, organizationId, auditSeal)) return null;
    return { sequence: after, hash: entry.hash };
  }

  /**
   * Walks the documents in the chain's range in the order of their ids, after an entry or from the range's beginning.
   */
  async function walk(organizationId: string, from: AuditHead): Promise<Walked> {
    const verifier = new ChainVerifier(auditSeal, undefined, from);
    let range = chainRange(organizationId);
    if (from.sequence > 0) range = { ...range, $gt: entryId(organizationId, from.sequence) };
    for (let walked = 0; walked < ENTRIES_MAX; walked += AT_ONCE) {
      const { broken, entries } = await reads.run(async () => {
        const found: readonly unknown[] = await auditLog
          .find({ _id: range }, { hint: { _id: 1 }, raw: true })
          .sort({ _id: 1 })
          .limit(AT_ONCE)
          .toArray();
        const documents = found.map(storedDocument);
        let first: ChainBreak | null = null;
        for (const entry of documents)
          first = verifier.take(positionedEntry(entry)?.found ?? { position: 0, fields: {} });
        return { broken: first, entries: documents };
      }, organizationId);
      const last = entries.at(-1);
      if (last === undefined || entries.length < AT_ONCE || broken !== null) return { verifier, isAll: true };
      range = { ...range, $gt: String(last["_id"]) };
    }
    return { verifier, isAll: false };
  }

  /**
   * Returns the first break after an entry, within the maximum of one call. A call that reaches the end also checks
   * outside the chain.
   */
  async function breakBehind(
    organizationId: string,
    from: AuditHead,
  ): Promise<[verifiedTo: number, ChainBreak | null]> {
    const { isAll, verifier } = await walk(organizationId, from);
    const broken = verifier.end();
    const verifiedTo = verifier.checkedEntries;
    if (broken !== null || !isAll) return [verifiedTo, broken];
    const stray = await strayOf(auditLog, organizationId);
    return [verifiedTo, stray === null ? null : strayBreak(verifiedTo, stray)];
  }

  return {
    async verifyAuditLog({ query: { after } }, { principal: { organizationId } }) {
      const { sequence: lastSequence } = await genuineHeadOf(auditLog, organizationId, auditSeal);
      const answer = (verifiedTo: number, broken: ChainBreak | null) =>
        ok({
          body: {
            unbroken: broken === null,
            verifiedTo,
            // Entries may have been appended during the walk.
            lastSequence: Math.max(lastSequence, verifiedTo),
            broken,
          },
        });
      if (after > lastSequence) {
        const detail = `entry ${String(after)} was verified; the chain ends at ${String(lastSequence)}`;
        return answer(lastSequence, { sequence: lastSequence + 1, problem: "cut_tail", detail });
      }
      const from = await behind(organizationId, after);
      if (from === null) {
        const detail = "it is not as it was written";
        return answer(after - 1, { sequence: after, problem: "changed", detail });
      }
      const [verifiedTo, broken] = await breakBehind(organizationId, from);
      return answer(verifiedTo, broken);
    },
  };
}

interface Walked {
  readonly verifier: ChainVerifier;
  /** Whether the walk reached the end. */
  readonly isAll: boolean;
}
