import { expect } from "chai";
import { createSecretKey } from "node:crypto";
import type { Db } from "mongodb";
import {
  type AuditDocument,
  auditLogOf,
  chainRange,
  positionedEntry,
} from "../../src/store/audit-documents.ts";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import type { AuditSeal } from "../../src/domain/audit/entry.ts";
import { type AnchoredHashes, type ChainBreak, ChainVerifier } from "../../src/domain/audit/verify.ts";

/** The seal of the services that tests start. */
export const testSeal = (masterKey: string): AuditSeal =>
  auditSeal(MasterKey.parse(masterKey, "the tests").deriveKeys("audit-log"));

/** A seal for tests without a service. */
export const ownSeal = (): AuditSeal =>
  auditSeal([{ key: createSecretKey("a test's own key".padEnd(32, "."), "utf8"), retiredAt: null }]);

export const entriesOf = (db: Db, organizationId: string): Promise<AuditDocument[]> =>
  auditLogOf(db)
    .find({ _id: chainRange(organizationId) })
    .sort({ _id: 1 })
    .toArray();

/** What is wrong with documents as a chain of their organization. */
export function breakIn(
  documents: readonly Readonly<Record<string, unknown>>[],
  seal: AuditSeal,
  anchors?: AnchoredHashes,
): ChainBreak | null {
  const verifier = new ChainVerifier(seal, anchors);
  for (const document of documents) {
    const placed = positionedEntry(document);
    expect(placed, String(document["_id"])).not.to.equal(null);
    if (placed !== null) verifier.take(placed.found);
  }
  return verifier.end();
}
