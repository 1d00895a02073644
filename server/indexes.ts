import { AUDIT_INDEXES } from "../src/store/audit-documents.ts";
import { CHAIN_INDEXES } from "../src/chain/outbox.ts";
import { PROJECTION_INDEXES } from "../src/store/projections.ts";
import { TREASURY_INDEXES } from "../src/rails/wallet/treasuries.ts";
import { AUTHORIZATION_INDEXES } from "../src/rails/pocket/authorizations.ts";
import { CARD_CONNECTION_INDEXES } from "../src/rails/card/connections.ts";
import { ISSUED_CARD_INDEXES } from "../src/rails/card/issued.ts";
import { UNBOOKED_INDEXES } from "../src/rails/card/places.ts";
import { ORDER_INDEXES } from "../src/rails/challenge/orders.ts";
import { FUNDING_INDEXES } from "../src/rails/wallet/fundings.ts";
import { TARGET_INDEXES } from "../src/rails/wallet/targets.ts";
import { LIMIT_INDEXES } from "../src/rails/wallet/wallets.ts";
import { ensureRetention, type Retention } from "../src/store/retention.ts";
import { WEBHOOK_INDEXES } from "../src/store/webhook-documents.ts";
import { AUDIT_OUTBOX_INDEXES } from "../src/audit/audit-outbox.ts";
import { AUTH_INDEXES } from "../src/store/identity-indexes.ts";
import { OAUTH_INDEXES } from "../src/store/oauth-documents.ts";
import { SERVER_INDEXES } from "../src/store/collections.ts";
import { withoutTimeLimits } from "../src/store/connections.ts";
import { createIndexes } from "../src/store/indexes.ts";
import type { Logger } from "../src/lib/logger.ts";

/** Delay after which the log says what the start is waiting for. */
const LOG_DELAY_MS = 3_000;

/**
 * Creates all indexes of the service's collections and waits until they are built, however large the collections are.
 * Idempotent.
 */
export async function ensureIndexes(uri: string, retention: Retention, logger: Logger): Promise<void> {
  const isLong = setTimeout(() => {
    logger.info("building indexes; the service starts once they are complete");
  }, LOG_DELAY_MS);
  try {
    await withoutTimeLimits(uri, async (db) => {
      await createIndexes(
        db,
        ...PROJECTION_INDEXES,
        AUTH_INDEXES,
        AUDIT_INDEXES,
        AUDIT_OUTBOX_INDEXES,
        WEBHOOK_INDEXES,
        SERVER_INDEXES,
        OAUTH_INDEXES,
        CHAIN_INDEXES,
        TREASURY_INDEXES,
        LIMIT_INDEXES,
        ORDER_INDEXES,
        AUTHORIZATION_INDEXES,
        FUNDING_INDEXES,
        CARD_CONNECTION_INDEXES,
        ISSUED_CARD_INDEXES,
        UNBOOKED_INDEXES,
        TARGET_INDEXES,
      );
      await ensureRetention(db, retention);
    });
  } finally {
    clearTimeout(isLong);
  }
}
