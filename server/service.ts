import { randomBytes } from "node:crypto";
import { DeviceTokens } from "../src/identity/device-token.ts";
import { ContainerBudgets } from "../src/containers/container-budgets.ts";
import { collectionsOf } from "../src/store/collections.ts";
import { eventDataOf } from "../src/changes/records.ts";
import { Streams } from "../src/changes/streams.ts";
import { Containers } from "../src/containers/containers.ts";
import { Logos } from "../src/containers/logos.ts";
import { Creates } from "../src/agents/creates/creates.ts";
import { DailyCreates } from "../src/agents/creates/daily-creates.ts";
import { flushActors } from "./core.ts";
import { endedConnectionsOf } from "./handlers/connections.ts";
import { StripeBilling } from "../src/billing/stripe-billing.ts";
import { createHandlers } from "./handlers/index.ts";
import { Admission } from "./http/admission.ts";
import { BrowserSessions } from "./http/browser-sessions.ts";
import { createApp, trustedProxy } from "./http/app.ts";
import { connectionsMax, ofAddressMax } from "./http/connection-limits.ts";
import { RequestOrigins } from "./http/request-origins.ts";
import { KeyDeliveries } from "../src/agents/key-deliveries/key-deliveries.ts";
import { Limits } from "../src/limits/limits.ts";
import { Lists } from "../src/store/lists.ts";
import { registerOpenWork } from "../src/metrics/open-work.ts";
import { Bookings } from "../src/payments/bookings.ts";
import { CardMessages } from "../src/rails/card/inbound.ts";
import { CurrentProtocol } from "./mcp/current-protocol.ts";
import { Payments } from "../src/payments/payments.ts";
import { PaymentChanges } from "../src/payments/payment-changes.ts";
import { WaitingCalls } from "../src/payments/waiting-calls.ts";
import { openAuditTrail } from "./open-audit-trail.ts";
import { openIdentity } from "./open-identity.ts";
import { Pipeline } from "./pipeline/pipeline.ts";
import { forgedRecordsLog } from "../src/secrets/forged-records-log.ts";
import { Sealer } from "../src/secrets/sealer.ts";
import { authCollections } from "../src/store/identity-documents.ts";
import { transactionsOf } from "../src/store/transactions.ts";
import { WebhookEndpoints } from "../src/webhooks/endpoints.ts";
import { ClientConnections, sharesOrigin } from "./oauth/client-connections.ts";
import { BoundedWork } from "../src/lib/bounded-work.ts";
import { KeyedMutex } from "../src/lib/keyed-mutex.ts";
import type { ServiceOptions } from "./service-options.ts";

export interface RunningService {
  /** Finishes requests and sends confirmations to the actors. */
  drain(): Promise<void>;
  /** Returns the set-up link, a secret; null once the service is set up. */
  setUpLink(): Promise<string | null>;
}

/**
 * Share of a drain in which requests are answered. What remains open are MCP streams, which can be cut without loss.
 */
const ANSWERED_PART = 0.6;

/** Maximum time for the last confirmations, as a share of the requests' time. */
const FLUSH_PART = 0.5;

/** Maximum wait for a lock: by then the caller has been answered with 503. */
const LOCK_TIMEOUT_MS = 4_000;

/** Limits on long reads of a process, such as sums of a long history: running, waiting, and per organization. */
const LONG_READS = {
  atOnceMax: 4,
  waitingMax: 64,
  waitMs: 1_000,
  share: { atOnceMax: 2, waitingMax: 16 },
} as const;

/** Assembles REST and MCP over the core and starts serving. */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { baseUrl, clock, connections, core, http, logger, masterKey, mcpUrl } = options;
  const { db } = connections;
  const { decorateBackends = (plain) => plain } = options;
  const { outbox: invitesToMail } = core.mail;
  const backends = decorateBackends({
    actors: core.actors,
    ledgers: core.ledgers,
    collections: collectionsOf(db),
    deliveryKeys: core.deliveryKeys,
    transaction: transactionsOf(db.client),
    auditLog: core.auditLog,
    mailInvite: invitesToMail === null ? null : (invite) => invitesToMail.begin(invite),
  });
  const { actors, collections, deliveryKeys, ledgers } = backends;
  const mutex = new KeyedMutex(LOCK_TIMEOUT_MS);
  const onForged = forgedRecordsLog(logger, core.metrics);
  const oauth = sharesOrigin(baseUrl, mcpUrl)
    ? new ClientConnections({
        ...options,
        db,
        agents: collections.agents,
        documents: options.clientDocuments,
        onEnded: endedConnectionsOf({ ...core, ...backends, clock }),
        onForged: (id) => onForged("oauth", id),
      })
    : null;
  const identity = await openIdentity(options, backends, mutex, async (token) =>
    oauth === null ? null : oauth.connectionOf(token),
  );
  const { auth, authenticator, organizations, organizationKeys } = identity;
  const logoKey = masterKey.deriveKey("logo-links");
  const logos = new Logos({ collection: collections.logos, key: logoKey, baseUrl, clock });
  const dailyCreates = new DailyCreates(collections.dailyCreates);
  const containers = new Containers({ collections, logos, mutex, clock });
  const creates = new Creates({
    creates: collections.creates,
    dailyCreates,
    containers,
    mutex,
    clock,
  });
  const keyDeliveries = new KeyDeliveries({
    deliveries: collections.keyDeliveries,
    deliveryKeys,
    masterKey,
    clock,
  });
  const { collections: webhooks, guard, workflows } = core.webhooks;
  const sealer = new Sealer(masterKey);
  const endpoints = new WebhookEndpoints({
    accessProofs: core.accessProofs,
    mutex,
    webhooks,
    collections,
    guard,
    sealer,
    workflows,
    clock,
    retentionDays: core.webhooks.retentionDays,
  });
  const paymentChanges = new PaymentChanges(collections.transactions, (err) =>
    logger.warn({ err }, "the change stream of payments is interrupted"),
  );
  const raiseChanges = new PaymentChanges(collections.raiseRequests, (err) =>
    logger.warn({ err }, "the change stream of raise requests is interrupted"),
  );
  const waitingCalls = new WaitingCalls(Math.floor(connectionsMax() / 2));
  const trail = await openAuditTrail(options, backends);
  const streams = new Streams({
    db,
    dataOf: eventDataOf(collections),
    onError: (err) => logger.warn({ err }, "the change stream of records is interrupted"),
  });
  const approvalWindow = { approvalWindowSeconds: options.approvalWindowSeconds };
  const payments = new Payments({ ...core, ...approvalWindow, collections, clock, logger });
  const handlers = createHandlers({
    ...core,
    ...approvalWindow,
    payments,
    actors,
    ledgers,
    collections,
    creates,
    keyDeliveries,
    dailyCreates,
    containers,
    mutex,
    containerBudgets: new ContainerBudgets({
      actors,
      ledgers,
      writeCaps: (projectId, caps) => core.effectDependencies.projections.writeCaps(projectId, caps),
      collections,
    }),
    logos,
    webhooks: { ...core.webhooks, endpoints },
    reads: new BoundedWork(LONG_READS),
    lists: new Lists(new Sealer(masterKey.deriveKeys("cursor-sealing"))),
    auth,
    organizationKeys,
    auditSeal: trail.seal,
    connections: oauth,
    hashApiKey: identity.hashApiKey,
    agentProofs: identity.agentProofs,
    clock,
    logger,
    paymentChanges,
    raiseChanges,
    waitingCalls,
    streams,
    baseUrl,
    mcpUrl,
    keyDeliveryWindowSeconds: options.keyDeliveryWindowSeconds,
  });
  const limits = new Limits({
    counts: options.counts,
    clock,
    organizations,
    devices: new DeviceTokens(masterKey, randomBytes),
    onHit: (limit) => metrics.limitHit(limit),
  });
  const { metrics } = core;
  metrics.waitingCalls(() => waitingCalls.waiting);
  metrics.openStreams(() => streams.open);
  registerOpenWork({ collections, metrics, clock });
  let draining = false;
  const origins = new RequestOrigins([baseUrl, mcpUrl], options.allowedHosts);
  const browsers = new BrowserSessions(baseUrl, origins);
  const currentProtocol = new CurrentProtocol(logger);
  const { projections } = core.effectDependencies;
  const cardMessages = new CardMessages({
    ...core,
    bookings: new Bookings({ ...core, projections, clock }),
    ledgers,
    limits,
    connections: core.cardConnections,
    clock,
    onFailed: (message, err) => logger.warn({ err }, message),
    projections,
    rulings: payments.rulings,
  });
  const app = createApp({
    cardMessages,
    billing: new StripeBilling({
      secret: options.billingSecret,
      organizations: authCollections(db).organizations,
      journal: core.journal,
      outbox: trail.outbox,
      transaction: backends.transaction,
      clock,
    }),
    cardElements: core.cardConnections.elements,
    origins,
    currentProtocol,
    admission: new Admission({ authenticator, browsers, limits }),
    browsers,
    oauth,
    pipeline: new Pipeline({
      handlers,
      collections,
      accessProofs: core.accessProofs,
      agentProofs: identity.agentProofs,
      limits,
      audit: trail.audit,
      clock,
      logger,
    }),
    trustedProxies: options.trustedProxies,
    baseUrl,
    logos,
    codec: {
      ...options.payloadReaders,
      decode: (payloads) => connections.payloads.codec.decode(payloads),
      isOnlyOrganization: async () => (await collections.organizations.countDocuments({}, { limit: 2 })) < 2,
    },
    logger,
    metrics,
    showsDetails: options.showsDetails,
    engines: options.engines,
    blockedProjects: () => core.ledgers.blockedProjects(),
    draining: () => draining,
  });
  http.serve(app, {
    ofAddressMax: options.connectionsPerAddress ?? ofAddressMax(),
    isProxy: trustedProxy(app),
    onRefused: (address) => logger.warn({ address }, "an address has more connections than its share"),
  });
  return {
    async setUpLink() {
      const token = await auth.setUpToken();
      return token === null ? null : `${baseUrl}/setup#token=${token}`;
    },
    async drain() {
      draining = true;
      // Waiting calls are answered with the current state.
      const { drainTimeoutMs: withinMs } = options;
      const ofProtocol = setTimeout(() => void currentProtocol.end(), ANSWERED_PART * withinMs);
      const [cut] = await Promise.all([
        http.drain(withinMs),
        paymentChanges.end(),
        raiseChanges.end(),
        streams.end(),
      ]);
      clearTimeout(ofProtocol);
      if (cut > 0) logger.warn({ requests: cut }, "requests were cut off: they outlasted the drain");
      await currentProtocol.end();
      await trail.end();
      await flushActors(core, FLUSH_PART * withinMs, logger);
      await identity.flush();
    },
  };
}
