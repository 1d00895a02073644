import { join } from "node:path";
import type { LedgerSettings } from "../src/messages/ledger.ts";
import { openAnchorSink } from "../src/audit/chain/anchor-file.ts";
import { type AnchoringDependencies, AuditAnchoring } from "../src/audit/chain/anchoring.ts";
import { AuditAppender } from "../src/audit/chain/appender.ts";
import { auditSeal } from "../src/audit/chain/seal.ts";
import type { EffectDependencies } from "../src/payments/effects.ts";
import type { EventJournal } from "../src/store/journal.ts";
import type { PasswordCost } from "../src/identity/passwords.ts";
import { relyingPartyOf } from "../src/identity/relying-party.ts";
import type { Wallets } from "../src/rails/wallet/index.ts";
import { type Config, encryptsPayloads } from "./config.ts";
import { type Addresses, connect, type Connections, withRights } from "../src/store/connections.ts";
import { cardIssuers } from "../src/rails/card/issuers.ts";
import type { CardIssuerKind } from "../src/payments/card-issuer.ts";
import { createCore } from "./core.ts";
import { ensureIndexes } from "./indexes.ts";
import { originsOf } from "./http/request-origins.ts";
import type { HttpServer } from "./http/server.ts";
import type { Counts } from "../src/limits/counts.ts";
import { MemoryCounts } from "../src/limits/memory-counts.ts";
import { MongoCounts } from "../src/limits/mongo-counts.ts";
import type { GuardOptions } from "../src/lib/guarded-fetch/guarded-fetch.ts";
import type { Logger } from "../src/lib/logger.ts";
import { Metrics } from "../src/metrics/metrics.ts";
import { openPayloads } from "../src/temporal/temporal-payloads.ts";
import { payloadKeysOf } from "../src/temporal/payload-keys.ts";
import { refusalsLog } from "../src/temporal/refusals-log.ts";
import { openTracing } from "./open-tracing.ts";
import { openWallets } from "./chain.ts";
import { openPeers } from "./open-peers.ts";
import { TemporalCalls } from "../src/actors/calls.ts";
import { DeliveryKeyFiles } from "../src/agents/key-deliveries/delivery-keys.ts";
import { TemporalDeliveryKeys } from "../src/actors/delivery-keys.ts";
import { loadMasterKey } from "../src/secrets/load-master-key.ts";
import { KeyedMacs } from "../src/secrets/keyed-macs.ts";
import { Sealer } from "../src/secrets/sealer.ts";
import { KeyWatch, type KeyWatchTimes } from "../src/secrets/key-watch.ts";
import type { Backends, ServiceOptions } from "./service-options.ts";
import { EngineWatch, enginesOf } from "./readiness.ts";
import { checkNamespace } from "./temporal-namespace.ts";
import { TemporalRenewal } from "./temporal-renewal.ts";
import type { RunningWorker, WorkerOptions } from "./worker.ts";

/** Shares of the drain time for requests in flight and for activities. */
const REQUESTS_PART = 0.4;
const ACTIVITIES_PART = 0.2;

/** Timeout for draining probes: they are answered at once, and idle connections are not waited for. */
const PROBES_DRAIN_TIMEOUT_MS = 500;

/** Folder in DATA_DIR. */
const KEY_DELIVERY_FOLDER = "key-delivery";

/** Roles of a process: both, or one of them beside other processes. */
export interface Roles {
  readonly server: boolean;
  readonly worker: boolean;
}

export interface RoleOptions {
  readonly roles: Roles;
  readonly config: Config;
  readonly addresses: Addresses;
  /** Whether the databases are embedded, so that the master key may be stored beside them. */
  readonly embedded: boolean;
  readonly http: HttpServer | null;
  /** Separate listener of metrics and health. */
  readonly probesHttp?: HttpServer | null;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly temporalUiUrl?: string | null;
  readonly logger: Logger;
  readonly clock: () => Date;
  /** Environment, for settings of optional parts, such as a chain. */
  readonly env: NodeJS.ProcessEnv;
  readonly decorateEffects?: (dependencies: EffectDependencies) => EffectDependencies;
  readonly decorateBackends?: (backends: Backends) => Backends;
  /** Passed to the core. False only in the benchmark. */
  readonly auditsPaymentDecisions?: boolean;
  /** Passed to the core. Set only by tests. */
  readonly ledgerSettings?: LedgerSettings;
  /** Default: all known issuers. */
  readonly cardIssuers?: readonly CardIssuerKind[];
  readonly cardNetworkUrl?: string | null;
  /** Passed to the service. Set only by tests. */
  readonly passwordCost?: PasswordCost;
  /** Set only by tests. */
  readonly keyWatchTimes?: KeyWatchTimes;
  /** Networks from which OAuth clients' documents may be fetched. Set only by tests. */
  readonly clientDocuments?: GuardOptions;
  /** Counts of rate limits. Default: in this process, or in MongoDB if it is one of several. */
  readonly counts?: Counts;
}

export interface RunningRoles {
  readonly connections: Connections;
  /** Journal of events, for publishing without a request, as the benchmark does. */
  readonly journal: EventJournal;
  /** Rejects when a part has failed permanently. */
  readonly failed: Promise<never>;
  /** Finishes requests, ends the worker's tasks, and closes connections. */
  stop(): Promise<void>;
  /** Part that is being stopped, or would be next; null if all have stopped. */
  unfinished(): string | null;
  /** Returns the set-up link; null once there is an organization, or without a server. */
  setUpLink(): Promise<string | null>;
  cachedWorkflows(): number;
  /** Applies renewed certificates and keys of Temporal now. */
  renewTemporal(): Promise<void>;
}

export async function startRoles(options: RoleOptions): Promise<RunningRoles> {
  const { addresses, clock, config, embedded, logger, roles } = options;
  const sink = roles.server ? await openAnchorSink(config.auditAnchorFile, logger) : null;
  const masterKey = await loadMasterKey({
    setting: config.masterKey,
    embeddedDataDir: embedded ? config.dataDir : null,
  });
  const tracing = config.tracesEndpoint === null ? null : await openTracing(config.tracesEndpoint, logger);
  const metrics = new Metrics();
  const payloads = openPayloads({
    keys: payloadKeysOf(masterKey),
    isEncrypted: encryptsPayloads(config, addresses),
    onRefused: refusalsLog(logger, metrics),
  });
  const connections = await connect(addresses, payloads);
  if (connections.temporalSecurity !== null) await checkNamespace(connections);
  const keyWatch = new KeyWatch(connections.db, masterKey, options.keyWatchTimes);
  await withRights(connections.db, async () => {
    await keyWatch.start(clock());
    await ensureIndexes(addresses.mongodbUri, config.retention, logger);
  });
  const { decorateEffects, ledgerSettings } = options;
  const { db } = connections;
  // A single process overwrites the keys it deletes on disk; several processes share no disk.
  const deliveryKeys = embedded
    ? await DeliveryKeyFiles.in(join(config.dataDir, KEY_DELIVERY_FOLDER))
    : new TemporalDeliveryKeys(new TemporalCalls(connections.temporal, addresses.taskQueue));
  const { evmRpcUrl: rpcUrl } = addresses;
  const seal = auditSeal(masterKey.deriveKeys("audit-log"));
  const auditLog = new AuditAppender(db, seal);
  const opening = { rpcUrl, env: options.env, masterKey, db, clock, logger, metrics, auditLog };
  const wallets = openWallets(opening);
  await wallets?.start();
  // An embedded service is the only server. A separate worker forwards to the servers there are.
  const isOneOfSeveral = !embedded && (config.internalUrl !== null || !roles.server);
  const peers = isOneOfSeveral ? openPeers({ config, connections, masterKey, metrics, clock, logger }) : null;
  const core = await createCore({
    connections,
    logger,
    clock,
    route: peers?.route ?? null,
    wallets,
    deliveryKeys,
    auditLog,
    paymentMacs: masterKey.macs("payment-proofs"),
    recordMacs: new KeyedMacs(masterKey.deriveKeys("payment-proofs")),
    accessMacs: masterKey.macs("access-proofs"),
    agentMacs: masterKey.macs("agent-proofs"),
    auditSeal: seal,
    metrics,
    sealer: new Sealer(masterKey),
    webhookSettings: config.webhooks,
    shopCidrs: config.shopCidrs,
    cardIssuers: options.cardIssuers ?? cardIssuers(options.cardNetworkUrl ?? null),
    cardReadySeconds: config.cardReadySeconds,
    mailSettings: config.mail,
    retention: config.retention,
    auditsPaymentDecisions: options.auditsPaymentDecisions ?? true,
    ...(decorateEffects === undefined ? {} : { decorateEffects }),
    ...(ledgerSettings === undefined ? {} : { ledgerSettings }),
  });
  const engines = new EngineWatch(enginesOf(connections, wallets));
  metrics.engines(() => engines.states());
  // With embedded engines this is the only worker, and nobody would set the current version in the engine.
  const buildId = embedded ? null : config.workerBuildId;
  const graceMs = ACTIVITIES_PART * config.drainSeconds * 1_000;
  const worker = roles.worker ? await runWorker({ connections, core, logger, buildId, graceMs }) : null;
  const service = roles.server ? await runService(options, { connections, core, engines, masterKey }) : null;
  if (roles.server) await peers?.serve(core.ledgers);
  const { probesHttp = null } = options;
  let isStopping = false;
  if (probesHttp !== null)
    await serveProbes(options, probesHttp, { core, engines, draining: () => isStopping });
  const renewal = renewTemporal(connections, worker, logger);
  const anchoring = sink === null ? null : openAnchoring(options, { db, sink, wallets, seal });
  /** Parts to stop in order, with their names for the log. */
  const stops: [part: string, stop: () => unknown][] = [
    ["renewal of certificates", () => renewal?.stop()],
    ["turns of ledgers", () => peers?.leave()],
    ["requests", () => service?.drain()],
    ["worker", () => worker?.stop()],
    ["forwarded commands", () => peers?.close()],
    ["probes", () => probesHttp?.drain(PROBES_DRAIN_TIMEOUT_MS)],
    ["audit log", () => core.auditLog.flush()],
    ["anchors", () => anchoring?.stop()],
    ["chain", () => wallets?.stop()],
    ["shops", () => core.shops.close()],
    ["webhooks", () => core.webhooks.close()],
    ["master key", () => keyWatch.stop()],
    ["connections", () => connections.close()],
    ["traces", () => tracing?.close()],
  ];
  const failed = Promise.race([keyWatch.failed, ...(worker === null ? [] : [worker.failed])]);
  failed.catch(() => undefined);
  return {
    connections,
    journal: core.journal,
    failed,
    setUpLink: async () => (await service?.setUpLink()) ?? null,
    cachedWorkflows: () => worker?.cachedWorkflows() ?? 0,
    renewTemporal: async () => renewal?.look(),
    unfinished: () => stops[0]?.[0] ?? null,
    async stop() {
      isStopping = true;
      core.webhooks.stopWatching();
      for (let next = stops[0]; next !== undefined; next = stops[0]) {
        await next[1]();
        stops.shift();
      }
    },
  };
}

/** Starts watching for renewed certificates and keys; null for an embedded Temporal, which has none. */
function renewTemporal(
  { addresses, renewTemporal: renewClient, temporalSecurity: current }: Connections,
  worker: RunningWorker | null,
  logger: Logger,
): TemporalRenewal | null {
  const { readTemporalSecurity: read } = addresses;
  if (read === null || current === null) return null;
  const renewals = [renewClient, ...(worker === null ? [] : [worker.renew])];
  const renewal = new TemporalRenewal({ current, read, renewals, logger });
  renewal.start();
  return renewal;
}

function openAnchoring(
  { clock, config, logger }: RoleOptions,
  {
    wallets,
    ...opened
  }: Pick<AnchoringDependencies, "db" | "seal" | "sink"> & {
    readonly wallets: Wallets | null;
  },
): AuditAnchoring {
  const anchoring = new AuditAnchoring({
    ...opened,
    clock,
    recordRoot: wallets === null ? null : (root) => wallets.recordRoot(root),
    onWarning: (message, err) => logger.warn({ err }, message),
  });
  if (config.auditAnchorSeconds > 0) anchoring.start(config.auditAnchorSeconds);
  return anchoring;
}

/** Starts a worker. Loaded on demand, so that a process without one does not load Temporal's worker SDK. */
async function runWorker(options: WorkerOptions) {
  const { startWorker } = await import("./worker.ts");
  return startWorker(options);
}

async function serveProbes(
  { baseUrl, logger }: RoleOptions,
  http: HttpServer,
  { core, draining, engines }: Pick<Opened, "core" | "engines"> & { readonly draining: () => boolean },
): Promise<void> {
  const { createProbesApp } = await import("./http/probes-app.ts");
  const { ledgers, metrics } = core;
  const blockedProjects = () => ledgers.blockedProjects();
  http.serve(createProbesApp({ baseUrl, logger, metrics, engines, blockedProjects, draining }));
}

type Opened = Pick<ServiceOptions, "connections" | "core" | "engines" | "masterKey">;

/** Starts the service. Loaded on demand, so that a process without a server does not load request handling. */
async function runService(options: RoleOptions, opened: Opened) {
  const {
    baseUrl,
    clientDocuments,
    clock,
    config,
    counts,
    decorateBackends,
    http,
    logger,
    mcpUrl,
    passwordCost,
    roles,
  } = options;
  if (http === null) throw new Error("a server needs its port");
  const { startService } = await import("./service.ts");
  const { allowedHosts, approvalWindowSeconds, connectionsPerAddress } = config;
  const { keyDeliveryWindowSeconds, trustedProxies, webauthn } = config;
  const { temporalUiUrl = null } = options;
  const uiOrigins = temporalUiUrl === null ? [] : originsOf(temporalUiUrl);
  return startService({
    ...opened,
    http,
    baseUrl,
    mcpUrl,
    relyingParty: relyingPartyOf(baseUrl, webauthn),
    defaultPlan: config.defaultPlan ?? (options.embedded ? "enterprise" : "free"),
    billingSecret: config.billingSecret,
    approvalWindowSeconds,
    keyDeliveryWindowSeconds,
    payloadReaders: { token: config.codecToken, origins: config.codecOrigins ?? uiOrigins },
    trustedProxies,
    connectionsPerAddress,
    allowedHosts,
    ssoDomainServers: config.ssoDomainServers,
    // A server without a worker in its process is one of several.
    counts: counts ?? (roles.worker ? new MemoryCounts() : await MongoCounts.on(opened.connections.db)),
    drainTimeoutMs: REQUESTS_PART * config.drainSeconds * 1_000,
    clock,
    logger,
    showsDetails: (options.probesHttp ?? null) === null,
    ...(decorateBackends === undefined ? {} : { decorateBackends }),
    ...(passwordCost === undefined ? {} : { passwordCost }),
    ...(clientDocuments === undefined ? {} : { clientDocuments }),
  });
}
