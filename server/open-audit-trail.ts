import { auditSeal } from "../src/audit/chain/seal.ts";
import { AuditOutbox } from "../src/audit/audit-outbox.ts";
import { Refusals } from "../src/audit/refusals.ts";
import { AuditSweeping } from "../src/audit/sweeping.ts";
import { AuditTrail } from "../src/audit/trail.ts";
import type { Backends, ServiceOptions } from "./service-options.ts";

/** Opens the audit log for requests, with the sweep that completes entries left unfinished. */
export async function openAuditTrail(options: ServiceOptions, { auditLog, transaction }: Backends) {
  const { clock, connections, core, logger, masterKey } = options;
  const { db } = connections;
  const { metrics } = core;
  const seal = auditSeal(masterKey.deriveKeys("audit-log"));
  const refusals = new Refusals({
    log: auditLog,
    clock,
    onWarning: (err) => logger.warn({ err }, "counts of refusals could not be written to the audit log yet"),
  });
  const outbox = new AuditOutbox({
    db,
    log: auditLog,
    seal,
    clock,
    onWarning: (message, err) => logger.warn({ err }, message),
  });
  const sweeping = new AuditSweeping({ outbox, logger, metrics });
  await sweeping.begin();
  const audit = new AuditTrail({ log: auditLog, outbox, refusals, transaction, clock });
  return {
    audit,
    outbox,
    seal,
    async end() {
      await refusals.end();
      await Promise.all([sweeping.end(), outbox.flush()]);
    },
  };
}
