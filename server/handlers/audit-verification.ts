import { chainSegment, headOf, positionedEntry } from "../../src/store/audit-documents.ts";
import { type AuditHead, isSealed, NO_ENTRY } from "../../src/domain/audit/entry.ts";
import { type ChainBreak, ChainVerifier } from "../../src/domain/audit/verify.ts";
import { ok } from "../../src/domain/result.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Entries that one call looks at, and that are read at a time: each takes some tens of microseconds of this thread. */
const ENTRIES_MAX = 5_000;
const AT_ONCE = 250;

/** Verifying the audit log (docs/audit-log.md) without the command line. */
export function auditVerificationHandlers({
  auditSeal,
  collections: { auditLog },
  reads,
}: HandlerDependencies): Pick<Handlers, "verifyAuditLog"> {
  /** The entry that was verified before, as it is now; null: it is not there as it was written. */
  async function behind(organizationId: string, after: number): Promise<AuditHead | null> {
    if (after === 0) return NO_ENTRY;
    const entry = await auditLog.findOne({ _id: chainSegment(organizationId, after - 1, after) });
    const found = entry === null ? null : positionedEntry(entry);
    const isGenuine =
      found?.found.position === after &&
      found.found.fields["sequence"] === after &&
      isSealed(found.found.fields, auditSeal);
    return isGenuine ? { sequence: after, hash: String(found.found.fields["hash"]) } : null;
  }

  async function walk(organizationId: string, from: AuditHead, upTo: number): Promise<ChainVerifier> {
    const verifier = new ChainVerifier(auditSeal, undefined, from);
    for (let after = from.sequence; after < upTo; after += AT_ONCE) {
      const segment = chainSegment(organizationId, after, Math.min(after + AT_ONCE, upTo));
      await reads.run(async () => {
        const entries = await auditLog
          .find({ _id: segment }, { hint: { _id: 1 } })
          .sort({ _id: 1 })
          .toArray();
        for (const entry of entries)
          verifier.take(positionedEntry(entry)?.found ?? { position: 0, fields: {} });
      }, organizationId);
    }
    return verifier;
  }

  return {
    async verifyAuditLog({ query: { after } }, { principal: { organizationId } }) {
      const { sequence: lastSequence } = await headOf(auditLog, organizationId);
      const answer = (verifiedTo: number, broken: ChainBreak | null) =>
        ok({ body: { unbroken: broken === null, verifiedTo, lastSequence, broken } });
      if (after >= lastSequence && after > 0) {
        const isCut = after > lastSequence;
        const detail = `entry ${String(after)} was verified; the chain ends at ${String(lastSequence)}`;
        if (isCut) return answer(lastSequence, { sequence: lastSequence + 1, problem: "cut_tail", detail });
      }
      const from = await behind(organizationId, after);
      if (from === null) {
        const detail = "it is not as it was written";
        return answer(after - 1, { sequence: after, problem: "changed", detail });
      }
      const verifier = await walk(organizationId, from, Math.min(after + ENTRIES_MAX, lastSequence));
      const broken = verifier.end();
      return answer(verifier.checkedEntries, broken);
    },
  };
}
