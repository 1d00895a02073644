import { collectionsOf } from "../src/store/collections.ts";
import { PaymentRulings } from "../src/payments/rules/payment-rules.ts";
import type { AuditAppender } from "../src/audit/chain/appender.ts";
import type { EffectDependencies, PaymentEffects } from "../src/payments/effects.ts";
import { createPaymentEffects } from "../src/payments/effects.ts";
import { EventJournal } from "../src/store/journal.ts";
import { HmacPaymentProofs, type OnForged } from "../src/payments/payment-proofs.ts";
import { MongoProjections } from "../src/store/projections.ts";
import type { Retention } from "../src/store/retention.ts";
import { MongoLedgerRevisions } from "../src/store/ledger-revisions.ts";
import { PaymentPublisher } from "../src/payments/payment-publisher.ts";
import { Orders } from "../src/rails/challenge/orders.ts";
import { type ChallengeRail, challengeRailOf } from "../src/rails/challenge/rail.ts";
import { Shops } from "../src/rails/challenge/shops.ts";
import { CardConnections } from "../src/rails/card/connections.ts";
import { IssuedCards } from "../src/rails/card/issued.ts";
import type { CardIssuerKind } from "../src/payments/card-issuer.ts";
import type { NetworkScripts } from "../src/rails/folder.ts";
import { railsOf } from "../src/rails/rails.ts";
import type { Wallets } from "../src/rails/wallet/index.ts";
import type { DeliveryKeys } from "../src/agents/key-deliveries/delivery-keys.ts";
import { MongoDeliveryWindows } from "../src/agents/key-deliveries/windows.ts";
import type { DeliveryWindows, LimitMirror, Rails } from "../src/payments/ports.ts";
import { AgentActors } from "../src/actors/agent-actors.ts";
import { LEDGER_SETTINGS, type LedgerSettings } from "../src/messages/ledger.ts";
import { TemporalCalls } from "../src/actors/calls.ts";
import type { LedgerRoute } from "../src/actors/ledger-peers.ts";
import { Ledgers } from "../src/actors/ledgers.ts";
import { wholePayment } from "../src/actors/whole-payment.ts";
import { TemporalActors } from "../src/actors/temporal.ts";
import { TemporalWebhooks } from "../src/actors/webhook-workflows.ts";
import type { WebhookSettings } from "../src/webhooks/settings.ts";
import type { Connections } from "../src/store/connections.ts";
import { AccessProofs } from "../src/secrets/access-proofs.ts";
import { BookedTotals } from "../src/audit/booked-totals.ts";
import type { AuditSeal } from "../src/domain/audit/entry.ts";
import { AgentPlaces } from "../src/agents/agent-places.ts";
import { AgentProofs } from "../src/agents/agent-proofs.ts";
import { forgedRecordsLog } from "../src/secrets/forged-records-log.ts";
import type { KeyedMacs } from "../src/secrets/keyed-macs.ts";
import type { Sealer } from "../src/secrets/sealer.ts";
import { openWebhooks, type Webhooks } from "../src/webhooks/webhooks.ts";
import type { Logger } from "../src/lib/logger.ts";
import type { MailSettings } from "../src/mail/settings.ts";
import { type MailParts, openMail } from "./open-mail.ts";
import { withTimeout } from "../src/lib/with-timeout.ts";
import type { Metrics } from "../src/metrics/metrics.ts";
import { observedProjections, observedRails } from "../src/metrics/observed.ts";

/** Parts common to server and worker: access to the actors, and the effects of their decisions. */
export interface Core {
  readonly actors: TemporalActors;
  readonly agents: AgentActors;
  readonly ledgers: Ledgers;
  readonly effectDependencies: EffectDependencies;
  readonly effects: PaymentEffects;
  /** Null without a configured chain. */
  readonly wallets: Wallets | null;
  readonly limits: LimitMirror;
  readonly rails: Rails;
  readonly deliveryKeys: DeliveryKeys;
  readonly windows: DeliveryWindows;
  readonly auditLog: AuditAppender;
  readonly proofs: HmacPaymentProofs;
  readonly accessProofs: AccessProofs;
  readonly metrics: Metrics;
  readonly webhooks: Webhooks;
  readonly shops: Shops;
  /** Null without a configured chain. */
  readonly purchases: ChallengeRail | null;
  readonly cards: IssuedCards;
  readonly cardConnections: CardConnections;
  readonly mail: MailParts;
  readonly journal: EventJournal;
}

export interface CoreOptions {
  readonly connections: Connections;
  readonly logger: Logger;
  readonly clock: () => Date;
  readonly wallets: Wallets | null;
  readonly deliveryKeys: DeliveryKeys;
  readonly auditLog: AuditAppender;
  /** Keys of the proofs of payments and of decisions on them. */
  readonly paymentMacs: KeyedMacs;
  /** Keys of the proofs in payments' records, retired ones included. */
  readonly recordMacs: KeyedMacs;
  /** Keys of the proofs of records that decide access. */
  readonly accessMacs: KeyedMacs;
  readonly agentMacs: KeyedMacs;
  readonly auditSeal: AuditSeal;
  readonly metrics: Metrics;
  readonly sealer: Sealer;
  readonly webhookSettings: WebhookSettings;
  /** Networks in which shops may be reached besides the public internet. */
  readonly shopCidrs: readonly string[];
  readonly cardIssuers: readonly CardIssuerKind[];
  /** Maximum time that a card waits for its first authorization. */
  readonly cardReadySeconds: number;
  /** Null disables mail. */
  readonly mailSettings: MailSettings | null;
  readonly retention: Retention;
  /** False only in a benchmark that measures the cost of payments' audit entries. */
  readonly auditsPaymentDecisions?: boolean;
  /** Route to ledgers through other servers; null if this is the only server. */
  readonly route: LedgerRoute | null;
  /** Settings of newly started ledgers. Tests make them sweep sooner. */
  readonly ledgerSettings?: LedgerSettings;
  /** Wraps the server's effects. Crash tests break them at a chosen point. */
  readonly decorateEffects?: (dependencies: EffectDependencies) => EffectDependencies;
}

/**
 * Sends the last confirmations to ledgers and agents' actors, with a short timeout: the worker that answers may be
 * stopping too, and sweeps cover what is not confirmed.
 */
export async function flushActors(
  { agents, ledgers }: Pick<Core, "agents" | "ledgers">,
  withinMs: number,
  logger: Logger,
): Promise<void> {
  const flush = async (): Promise<void> => {
    await ledgers.flushAll();
    await agents.flushAll();
  };
  try {
    await withTimeout(withinMs, flush());
  } catch (err) {
    logger.warn({ err }, "not all confirmations were sent; they are left to sweeps");
  }
}

/**
 * Share of a ledger's sweep delay during which a confirmation waits to join another update. A payment's own
 * confirmation and then that of the record that follows it both arrive before the ledger's timer for the payment fires.
 */
const CONFIRM_AFTER_SWEEPS = 0.3;

export async function createCore(options: CoreOptions): Promise<Core> {
  const {
    auditLog,
    clock,
    connections,
    deliveryKeys,
    ledgerSettings = LEDGER_SETTINGS,
    logger,
    decorateEffects = (plain) => plain,
    metrics,
    retention,
    wallets,
  } = options;
  const { db, temporal } = connections;
  const calls = new TemporalCalls(temporal, connections.addresses.taskQueue);
  const actors = new TemporalActors(calls, ledgerSettings);
  const { sealer } = options;
  const onForgedRecord = forgedRecordsLog(logger, metrics);
  const accessProofs = new AccessProofs(options.accessMacs, onForgedRecord);
  const common = { db, sealer, accessProofs, auditLog, clock, logger, metrics };
  const mail = await openMail({ ...common, settings: options.mailSettings, calls });
  const webhooks = await openWebhooks({
    ...common,
    settings: options.webhookSettings,
    workflows: new TemporalWebhooks(calls),
    deposits: wallets?.deposits ?? null,
    sweepOthers: () => mail.outbox?.sweep() ?? Promise.resolve(0),
    noticeHeld: mail.noticeHeld,
  });
  const journal = new EventJournal(db, accessProofs, () => webhooks.nudge(), retention.eventDays);
  const onForged: OnForged = (what, { agentId }, { request }) => {
    metrics.forged(what);
    const { transactionId } = request;
    logger.error(
      { agentId, transactionId, what },
      "forged: a command did not come from this service and was rejected",
    );
  };
  const proofs = new HmacPaymentProofs(options.paymentMacs, onForged, options.recordMacs);
  const agentProofs = new AgentProofs(options.agentMacs, (id) => onForgedRecord("agent", id));
  const projections = new MongoProjections({
    accessProofs,
    booked: new BookedTotals(db, options.auditSeal),
    db,
    journal,
    proofs,
    places: new AgentPlaces(db, agentProofs),
    onPaymentWritten: (payment) => metrics.paymentWritten(payment),
  });
  const networkScripts: NetworkScripts = {
    begin: (rail, profile, transactionId, effects) =>
      actors.startRailNetwork(profile, { rail, transactionId, effects }),
  };
  if (options.shopCidrs.length > 0)
    logger.warn(
      { allowCidrs: options.shopCidrs },
      "shops may also be in these networks; for development only",
    );
  const shops = new Shops(options.shopCidrs);
  const orders = new Orders(db, sealer, clock, accessProofs);
  const purchases = wallets === null ? null : challengeRailOf(wallets, { orders, shops, clock });
  const cardConnections = new CardConnections({ db, sealer, kinds: options.cardIssuers, clock });
  const readySeconds = options.cardReadySeconds;
  const cards = new IssuedCards({ db, clock, accessProofs, connections: cardConnections, readySeconds });
  const rulings = new PaymentRulings({ accessProofs, clock, collections: collectionsOf(db), proofs });
  const decisionLog = options.auditsPaymentDecisions === false ? null : auditLog;
  const opened = railsOf({
    db,
    clock,
    networkScripts,
    cards,
    cardConnections,
    isAgentGenuine: (agent) => agentProofs.genuine(agent) !== null,
    rulings,
    wallets,
    purchases,
  });
  const effectDependencies = decorateEffects({
    rails: observedRails(opened, metrics),
    projections: observedProjections(projections, metrics),
    workflows: actors,
    publisher: new PaymentPublisher({ journal, auditLog: decisionLog, clock }),
    proofs,
    clock,
    monotonicMs: () => performance.now(),
  });
  const onError = (message: string, error: unknown) => logger.warn({ err: error }, message);
  const { projections: records, publisher } = effectDependencies;
  // These depend on each other: a ledger follows an agent's name, key and archive; an agent's actor follows its pauses.
  const agents: AgentActors = new AgentActors({
    submit: (agentId, commands) => actors.submit(agentId, commands),
    ledgers: { submit: (project, command) => ledgers.submit(project, command) },
    writeAgent: (summary) => records.writeAgent(summary),
    onError,
  });
  const ledgers = new Ledgers({
    submit: (project, commands, known) => actors.submitToLedger(project, commands, known),
    ...(options.route === null ? {} : { route: options.route }),
    revisions: new MongoLedgerRevisions(db),
    recordAccount: (summary) => records.writeAccount(summary),
    wholePayment: (...asked) => wholePayment(effectDependencies, ...asked),
    flushPublished: () => publisher.flush(),
    confirmAfterMs: CONFIRM_AFTER_SWEEPS * ledgerSettings.sweepAfterSeconds * 1_000,
    onError,
  });
  metrics.queue("ledger_commands", () => ledgers.waiting);
  metrics.ledgerFills(() => ledgers.fills);
  metrics.blockedProjects(() => ledgers.blockedProjects());
  metrics.queue("agent_commands", () => agents.waiting);
  metrics.queue("audit_entries", () => auditLog.waiting);
  metrics.queue("records", () => projections.waiting);
  metrics.queue("events", () => journal.waiting);
  const effects = createPaymentEffects({ ...effectDependencies, ledgers });
  const limits = wallets?.limits ?? { mirror: () => Promise.resolve() };
  const { rails } = effectDependencies;
  const windows = new MongoDeliveryWindows(db, deliveryKeys, clock);
  return {
    actors,
    agents,
    ledgers,
    effectDependencies,
    effects,
    wallets,
    limits,
    rails,
    deliveryKeys,
    windows,
    auditLog,
    proofs,
    accessProofs,
    metrics,
    webhooks,
    shops,
    purchases,
    cards,
    cardConnections,
    mail,
    journal,
  };
}
