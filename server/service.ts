import { randomBytes } from "node:crypto";
import type { DeliveryKeys } from "../src/agents/key-deliveries/delivery-keys.ts";
import type { AuditLog } from "../src/audit/chain/appender.ts";
import { auditSeal } from "../src/audit/chain/seal.ts";
import { withTimeout } from "../src/lib/with-timeout.ts";
import type { Ledgers } from "../src/actors/ledgers.ts";
import type { TemporalActors } from "../src/actors/temporal.ts";
import { AuditOutbox } from "../src/audit/outbox.ts";
import { Refusals } from "../src/audit/refusals.ts";
import { AuditSweeping } from "../src/audit/sweeping.ts";
import { AuditTrail } from "../src/audit/trail.ts";
import { Authenticator } from "../src/identity/authenticator.ts";
import { authCollections } from "../src/store/identity-documents.ts";
import type { Mailing, Provision } from "../src/identity/context.ts";
import { DeviceTokens } from "../src/identity/device-token.ts";
import { Organizations } from "../src/identity/organizations.ts";
import type { RelyingParty } from "../src/identity/relying-party.ts";
import { createAuthService } from "../src/identity/service.ts";
import { ContainerBudgets } from "../src/containers/container-budgets.ts";
import { type Collections, collectionsOf } from "../src/store/collections.ts";
import type { TrustedProxies } from "./config.ts";
import type { Connections } from "../src/store/connections.ts";
import { eventDataOf } from "../src/changes/records.ts";
import { Streams } from "../src/changes/streams.ts";
import { Containers } from "../src/containers/containers.ts";
import { Logos } from "../src/containers/logos.ts";
import type { Core } from "./core.ts";
import { Creates } from "../src/agents/creates.ts";
import { DailyCreates } from "../src/agents/daily-creates.ts";
import { createHandlers } from "./handlers/index.ts";
import { Admission } from "./http/admission.ts";
import { BrowserSessions } from "./http/browser-sessions.ts";
import { createApp } from "./http/app.ts";
import { Callers } from "./http/callers.ts";
import type { HttpServer } from "./http/server.ts";
import { FirstUses } from "../src/agents/first-uses.ts";
import { KeyDeliveries } from "../src/agents/key-deliveries/key-deliveries.ts";
import { KeyUse } from "../src/agents/key-use.ts";
import type { Counts } from "../src/limits/counts.ts";
import { Limits } from "../src/limits/limits.ts";
import { Lists } from "../src/store/lists.ts";
import type { Logger } from "../src/lib/logger.ts";
import { inviteLink } from "../src/identity/invite-link.ts";
import { registerOpenWork } from "../src/metrics/open-work.ts";
import { OrganizationKeys } from "../src/identity/organization-keys/keys.ts";
import { CurrentProtocol } from "./mcp/current-protocol.ts";
import { PaymentChanges } from "../src/payments/payment-changes.ts";
import { Pipeline } from "./pipeline/pipeline.ts";
import { missingParts } from "./readiness.ts";
import { onceASecond } from "../src/lib/once-a-second.ts";
import { hashApiKey } from "../src/secrets/api-key-hash.ts";
import { Sealer } from "../src/secrets/sealer.ts";
import type { MasterKey } from "../src/secrets/master-key.ts";
import { type Transaction, transactionsOf } from "../src/store/transactions.ts";
import { WebhookEndpoints } from "../src/webhooks/endpoints.ts";
import { KeyedMutex } from "../src/lib/keyed-mutex.ts";

export interface ServiceOptions {
  readonly http: HttpServer;
  readonly connections: Connections;
  readonly core: Core;
  readonly masterKey: MasterKey;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  /** Whom passkeys are made for. */
  readonly relyingParty: RelyingParty;
  readonly approvalWindowSeconds: number;
  readonly keyDeliveryWindowSeconds: number;
  readonly trustedProxies: TrustedProxies;
  /** Names that requests to MCP, to the pages and with cookies may be for, besides those in the service's URLs. */
  readonly allowedHosts: readonly string[];
  readonly counts: Counts;
  readonly clock: () => Date;
  readonly logger: Logger;
  /** Whether `/metrics` is on this port; false where it has one of its own. */
  readonly showsMetrics: boolean;
  /** Stands between the handlers and what they use; crash tests hold them at a chosen point. */
  readonly decorateBackends?: (backends: Backends) => Backends;
}

/** The dependencies of request handlers. */
export interface Backends {
  readonly actors: TemporalActors;
  readonly ledgers: Ledgers;
  readonly collections: Collections;
  readonly deliveryKeys: DeliveryKeys;
  readonly transaction: Transaction;
  /** Where entries of requests are appended; crash tests break it between a write and its entry. */
  readonly auditLog: AuditLog;
  /** Begins an invite's mail; null: there is no mail. */
  readonly mailInvite: Mailing["begin"] | null;
}

export interface RunningService {
  /** Requests finish; confirmations are sent to the actors. */
  drain(): Promise<void>;
  /** Where the first organization is made; null once the service is set up. The link is a secret. */
  setUpLink(): Promise<string | null>;
}

/** By then every request that was at hand has been answered, and what is still open are streams that end with nothing. */
const ANSWERED_MS = 6_000;

/** As long as callers wait for their response: what has not begun by then has been answered 503. */
const LOCK_WAIT_MS = 4_000;

/** Puts REST and MCP together over the core and begins to answer. */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { baseUrl, clock, connections, core, http, logger, masterKey, mcpUrl } = options;
  const { db } = connections;
  const { decorateBackends = (plain) => plain } = options;
  const { outbox: invitesToMail } = core.mail;
  const { actors, auditLog, collections, deliveryKeys, ledgers, mailInvite, transaction } = decorateBackends({
    actors: core.actors,
    ledgers: core.ledgers,
    collections: collectionsOf(db),
    deliveryKeys: core.deliveryKeys,
    transaction: transactionsOf(db.client),
    auditLog: core.auditLog,
    mailInvite: invitesToMail === null ? null : (invite) => invitesToMail.begin(invite),
  });
  const organizations = Organizations.in(authCollections(db).organizations, clock);
  const provision = provisioner(options);
  const { relyingParty } = options;
  const useNotWritten = (err: unknown) =>
    logger.warn({ err }, "the last use of keys and sessions was not written");
  const { sessions, users } = authCollections(db);
  const sessionUse = new KeyUse(sessions, clock, useNotWritten);
  const auth = await createAuthService({
    db,
    masterKey,
    baseUrl,
    relyingParty,
    clock,
    organizations,
    provision,
    mailing: mailingOf(options, mailInvite),
    onSessionUsed: (_id) =>
      sessionUse.used(_id, (lastSeenAt) => ({
        updateOne: { filter: { _id }, update: { $max: { lastSeenAt } } },
      })),
  });
  const agentKeyUse = new KeyUse(collections.agents, clock, useNotWritten);
  const organizationKeyUse = new KeyUse(collections.organizationKeys, clock, useNotWritten);
  const hash = (value: string) => hashApiKey(masterKey, value);
  const mutex = new KeyedMutex(LOCK_WAIT_MS);
  const organizationKeys = new OrganizationKeys({
    collections,
    users,
    organizations,
    hashApiKey: hash,
    clock,
    keyUse: organizationKeyUse,
    mutex,
  });
  const firstUses = new FirstUses(core.agents);
  const authenticator = new Authenticator({
    agents: collections.agents,
    hashApiKey: hash,
    authenticateSession: (token) => auth.authenticateSession(token),
    authenticateOrganizationKey: (value) => organizationKeys.authenticate(value),
    isFirstUseAccepted: (agent) => firstUses.accept(agent),
    onAgentKeyUsed: ({ _id, key }) => {
      if (key === null) return;
      agentKeyUse.used(key.id, (at) => ({
        updateOne: { filter: { _id, "key.id": key.id }, update: { $max: { "key.lastUsedAt": at } } },
      }));
    },
  });
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
  const seal = auditSeal(masterKey.deriveKey("audit-log"));
  const streams = new Streams({
    db,
    dataOf: eventDataOf(collections),
    onError: (err) => logger.warn({ err }, "the change stream of records is interrupted"),
  });
  const handlers = createHandlers({
    ...core,
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
    lists: new Lists(masterKey.deriveKey("cursor-signing")),
    auth,
    organizationKeys,
    auditSeal: seal,
    hashApiKey: hash,
    clock,
    logger,
    paymentChanges,
    streams,
    baseUrl,
    mcpUrl,
    approvalWindowSeconds: options.approvalWindowSeconds,
    keyDeliveryWindowSeconds: options.keyDeliveryWindowSeconds,
  });
  const limits = new Limits({
    counts: options.counts,
    clock,
    organizations,
    devices: new DeviceTokens(masterKey, randomBytes),
    onHit: (limit) => metrics.limitHit(limit),
  });
  const refusals = new Refusals({
    log: auditLog,
    clock,
    onWarning: (err) => logger.warn({ err }, "counts of refusals could not be written to the audit log yet"),
  });
  const { metrics } = core;
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
  metrics.waitingCalls(() => paymentChanges.waiting);
  metrics.openStreams(() => streams.open);
  registerOpenWork({ collections, metrics, clock });
  let draining = false;
  const callers = new Callers([baseUrl, mcpUrl], options.allowedHosts);
  const browsers = new BrowserSessions(baseUrl, callers);
  const currentProtocol = new CurrentProtocol(logger);
  http.serve(
    createApp({
      callers,
      currentProtocol,
      admission: new Admission({ authenticator, browsers, limits }),
      browsers,
      pipeline: new Pipeline({ handlers, collections, limits, audit, clock, logger }),
      trustedProxies: options.trustedProxies,
      baseUrl,
      logos,
      logger,
      metrics,
      showsMetrics: options.showsMetrics,
      missing: onceASecond(() => missingParts(connections, core.wallets)),
      draining: () => draining,
    }),
  );
  return {
    async setUpLink() {
      const token = await auth.setUpToken();
      return token === null ? null : `${baseUrl}/setup#token=${token}`;
    },
    async drain() {
      draining = true;
      // Calls that wait for a decision are answered with the current state.
      const ofProtocol = setTimeout(() => void currentProtocol.end(), ANSWERED_MS);
      await Promise.all([paymentChanges.end(), streams.end(), http.drain()]);
      clearTimeout(ofProtocol);
      await currentProtocol.end();
      await refusals.end();
      await Promise.all([sweeping.end(), outbox.flush()]);
      await core.ledgers.flushAll();
      await core.agents.flushAll();
      await Promise.all([agentKeyUse.flush(), organizationKeyUse.flush(), sessionUse.flush()]);
    },
  };
}

/** How invites are mailed; null: they are not. */
function mailingOf({ baseUrl, core }: ServiceOptions, begin: Mailing["begin"] | null): Mailing | null {
  if (begin === null) return null;
  return {
    linkOf: (token) => inviteLink(baseUrl, token),
    begin,
    onLimited: () => core.metrics.limitHit("mailed_invites"),
  };
}

/** How long the start of a provisioning may delay a sign-in; the response has its own bound. */
const PROVISIONING_START_MS = 1_000;

/** Bounded, and never in a caller's way: what does not come off now is tried again at the owner's next sign-in. */
function provisioner({ core, logger }: ServiceOptions): Provision {
  return async ({ _id, defaultProjectId, defaultTeamId }, waitMs) => {
    const input = { organizationId: _id, defaultProjectId, defaultTeamId };
    try {
      await withTimeout(PROVISIONING_START_MS + waitMs, core.actors.provision(input, waitMs));
    } catch (err) {
      logger.warn({ err }, "the provisioning of an organization was not started in time");
    }
  };
}
