import type { Db } from "mongodb";
import type { AuditLog } from "../audit/chain/appender.ts";
import { createWebhookActivities, type Deposits, type WebhookActivities } from "./delivery/activities.ts";
import { DeliveryAttempts } from "./delivery/attempt.ts";
import { EventDispatcher, EVENT_AGE_MIN_MS } from "./delivery/dispatcher.ts";
import {
  type EndpointDocument,
  type WebhookCollections,
  webhookCollections,
} from "../store/webhook-documents.ts";
import { DeliveryOutcomes } from "./delivery/outcomes.ts";
import { Redeliveries } from "./delivery/redeliveries.ts";
import type { NoticeHeld } from "./delivery/ports.ts";
import { DeliverySlots } from "./delivery/slots.ts";
import { Watching } from "./delivery/watching.ts";
import { auditValue } from "../domain/audit/canonical.ts";
import { GuardedFetch } from "../lib/guarded-fetch/guarded-fetch.ts";
import { Load } from "../lib/load.ts";
import type { TemporalWebhooks } from "../actors/webhook-workflows.ts";
import { authoritiesIn } from "../identity/authorities.ts";
import type { WebhookSettings } from "./settings.ts";
import type { Logger } from "../lib/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { Sealer } from "../secrets/sealer.ts";
import { SECRET_PURPOSE } from "./endpoints.ts";
import { eventData } from "./event-data.ts";

/** Intervals of reading the journal while this process has not written to it: other processes write too. */
const EVENTS_PAUSE_MS = { pauseMs: 250, pauseMaxMs: 1_000 };
/** Intervals of asking the chain for new blocks: providers count calls, and a deposit's confirmations take longer. */
const DEPOSITS_PAUSE_MS = { pauseMs: 1_000, pauseMaxMs: 4_000 };

export interface WebhooksOptions {
  readonly db: Db;
  readonly accessProofs: AccessProofs;
  readonly settings: WebhookSettings;
  readonly sealer: Sealer;
  readonly auditLog: AuditLog;
  readonly workflows: TemporalWebhooks;
  readonly deposits: Deposits | null;
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Starts other work left by another process, together with each sweep of deliveries; returns its amount. */
  readonly sweepOthers: () => Promise<number>;
  /** Null: nobody is mailed. */
  readonly noticeHeld: NoticeHeld | null;
}

export interface Webhooks {
  readonly collections: WebhookCollections;
  readonly guard: GuardedFetch;
  readonly redeliveries: Redeliveries;
  readonly workflows: TemporalWebhooks;
  readonly activities: WebhookActivities;
  readonly retentionDays: number;
  /** Announces an event in the journal. */
  nudge(): void;
  /** Ends the watches of this process, so that other processes take over. */
  stopWatching(): void;
  close(): void;
}

/** Assembles the webhooks of a process. Throws `ConfigError` if the trusted authorities cannot be read. */
export async function openWebhooks(options: WebhooksOptions): Promise<Webhooks> {
  const { accessProofs, auditLog, clock, db, deposits, logger, metrics, sealer, settings, workflows } =
    options;
  const { allowCidrs, allowPorts, backoffSeconds, caFile, retentionDays } = settings;
  if (allowCidrs.length > 0) {
    logger.warn({ allowCidrs }, "webhooks may also be sent to these networks; for development only");
  }
  const collections = webhookCollections(db);
  const guard = new GuardedFetch({
    allowCidrs,
    allowPorts,
    extraCa: await authoritiesIn("WEBHOOK_CA_FILE", caFile),
  });
  const outcomes = new DeliveryOutcomes({ accessProofs, client: db.client, webhooks: collections, clock });
  const attempts = new DeliveryAttempts({
    accessProofs,
    webhooks: collections,
    outcomes,
    sender: guard,
    secrets: { open: ({ id, sealed }) => sealer.open(SECRET_PURPOSE, id, sealed) },
    slots: new DeliverySlots(),
    onEndpointDisabled: (endpoint) => auditLog.append(disabledEntry(endpoint)),
    backoffSeconds,
    clock,
    onAttempt: ({ failureReason, responseTimeMs }) =>
      metrics.webhookAttempted(failureReason === null ? "acknowledged" : "failed", responseTimeMs / 1_000),
  });
  const onDefect = (message: string, details: object) => logger.error(details, message);
  const sharing = { db, accessProofs, workflows, dataOf: eventData, retentionDays, clock, onDefect };
  const redeliveries = new Redeliveries(sharing);
  const load = new Load();
  const watching = {
    events: new Watching({ ...EVENTS_PAUSE_MS, settleMs: EVENT_AGE_MIN_MS }),
    deposits: new Watching({ ...DEPOSITS_PAUSE_MS, settleMs: 0 }),
  };
  const activities = createWebhookActivities({
    accessProofs,
    webhooks: collections,
    attempts,
    dispatcher: new EventDispatcher({
      ...sharing,
      noticeHeld: options.noticeHeld,
      load: () => load.current(),
    }),
    redeliveries,
    deposits,
    watching,
    sweepOthers: options.sweepOthers,
  });
  return {
    collections,
    guard,
    redeliveries,
    workflows,
    activities,
    retentionDays,
    nudge: () => watching.events.nudge(),
    stopWatching() {
      watching.events.stop();
      watching.deposits.stop();
    },
    close: () => guard.close(),
  };
}

/** Returns the audit entry that tells the owner that an endpoint was disabled, and why. */
function disabledEntry(endpoint: EndpointDocument) {
  const { _id, consecutiveFailures, disabled, organizationId } = endpoint;
  const { deliveryId = "", run = 0 } = disabled?.by ?? {};
  return {
    organizationId,
    entryKey: `webhook-disabled/${deliveryId}/${run}`,
    at: (disabled?.at ?? endpoint.updatedAt).getTime(),
    action: "disableWebhook",
    actor: { type: "system", id: "webhooks" },
    resource: { type: "webhook_endpoint", id: _id },
    from: null,
    result: { status: null, code: null },
    before: auditValue({ isActive: true }),
    after: auditValue({ isActive: false, reason: "consecutive_failures", consecutiveFailures, deliveryId }),
    decision: null,
  } as const;
}
