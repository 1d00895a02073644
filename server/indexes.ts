import { ensureAuditIndexes } from "../activities/audit/documents.ts";
import { ChainOutbox } from "../activities/chain/outbox.ts";
import { ensureProjectionIndexes } from "../activities/projections.ts";
import { Treasuries } from "../activities/rails/wallet/treasuries.ts";
import { ensureRetention, type Retention } from "../activities/retention.ts";
import { ensureWebhookIndexes } from "../activities/webhooks/documents.ts";
import { ensureAuditOutbox } from "./audit/outbox.ts";
import { ensureAuthIndexes } from "./auth/documents.ts";
import { ensureServerIndexes } from "./collections.ts";
import { withoutTimeLimits } from "./connections.ts";
import type { Logger } from "./logger.ts";

/** From then on it is said what a start waits for. */
const LONG_MS = 3_000;

/** Creates every index of the service's collections. It waits until they are built, however large the collections are; again is free. */
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
