import type { Db } from "mongodb";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { AUDIT_INDEXES, SERVICE_CHAIN } from "../../src/store/audit-documents.ts";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import { auditValue } from "../../src/domain/audit/canonical.ts";
import type { AuditedTransaction } from "../../src/audit/notes.ts";
import { newId } from "../../src/lib/ids.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import type { Transaction } from "../../src/store/transactions.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";

/**
 * Runs transactions without an audit entry, for a command that wrote its entry before it began. Never given to the
 * service's requests.
 */
export const withoutEntry =
  (transaction: Transaction): AuditedTransaction =>
  (work) =>
    transaction(async (session) => (await work(session)).value);

export interface Command {
  /** The organization whose chain has the entry; missing: the service's own. */
  readonly organizationId?: string;
  /** Name on the command line. */
  readonly via: string;
  readonly action: string;
  readonly resource: { readonly type: string; readonly id: string | null };
  readonly before?: unknown;
  readonly after: unknown;
}

/** Writes the audit entry of an operator's command that changed the service itself or an organization. */
export async function recordCommand(db: Db, masterKey: MasterKey, command: Command): Promise<void> {
  await verifyMasterKey(db, masterKey);
  await createIndexes(db, AUDIT_INDEXES);
  const log = new AuditAppender(db, auditSeal(masterKey.deriveKeys("audit-log")));
  await log.append({
    organizationId: command.organizationId ?? SERVICE_CHAIN,
    entryKey: newId("req"),
    at: Date.now(),
    action: command.action,
    actor: { type: "system", id: "command" },
    resource: command.resource,
    from: { address: null, surface: "admin", via: command.via },
    result: { status: null, code: null },
    before: auditValue(command.before),
    after: auditValue(command.after),
    decision: null,
  });
}
