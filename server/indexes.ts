import { ensureAuditIndexes } from "../src/store/audit-documents.ts";
import { ChainOutbox } from "../src/chain/outbox.ts";
import { ensureProjectionIndexes } from "../src/store/projections.ts";
import { Treasuries } from "../src/rails/wallet/treasuries.ts";
import { ensureRetention, type Retention } from "../src/store/retention.ts";
import { ensureWebhookIndexes } from "../src/store/webhook-documents.ts";
import { ensureAuditOutbox } from "../src/audit/outbox.ts";
import { ensureAuthIndexes } from "../src/store/identity-documents.ts";
import { ensureServerIndexes } from "../src/store/collections.ts";
import { withoutTimeLimits } from "../src/store/connections.ts";
import type { Logger } from "../src/lib/logger.ts";

/** From then on it is said what a start waits for. */
const LONG_MS = 3_000;

/** Creates every index of the service's collections. It waits until they are built, however large the collections are; idempotent. */
export async function ensureIndexes(uri: string, retention: Retention, logger: Logger): Promise<void> {
  const isLong = setTimeout(() => {
    logger.info("indexes are being built; the service starts as soon as they are there");
  }, LONG_MS);
  try {
    await withoutTimeLimits(uri, (db) =>
      Promise.all([
        ensureAuthIndexes(db),
        ensureProjectionIndexes(db),
        ensureRetention(db, retention),
        ensureAuditIndexes(db),
        ensureWebhookIndexes(db),
        ensureServerIndexes(db),
        ensureAuditOutbox(db),
        ChainOutbox.ensureIndexes(db),
        Treasuries.ensureIndexes(db),
      ]),
    );
  } finally {
    clearTimeout(isLong);
  }
}
