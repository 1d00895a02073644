import { join } from "node:path";
import { onceASecond } from "../src/lib/once-a-second.ts";
import type { LedgerSettings } from "../src/messages/ledger.ts";
import { AnchorFile } from "../src/audit/chain/anchor-file.ts";
import { AuditAnchoring } from "../src/audit/chain/anchoring.ts";
import { auditSeal } from "../src/audit/chain/seal.ts";
import type { EffectDependencies } from "../src/payments/effects.ts";
import type { EventJournal } from "../src/store/journal.ts";
import { relyingPartyOf } from "../src/identity/relying-party.ts";
import type { Wallets } from "../src/rails/wallet/index.ts";
import type { AuditSeal } from "../src/domain/audit/entry.ts";
import type { Config } from "./config.ts";
import { type Addresses, connect, type Connections, withRights } from "../src/store/connections.ts";
import { type Core, createCore } from "./core.ts";
import { ensureIndexes } from "./indexes.ts";
import type { HttpServer } from "./http/server.ts";
import type { Counts } from "../src/limits/counts.ts";
import { MemoryCounts } from "../src/limits/memory-counts.ts";
import { MongoCounts } from "../src/limits/mongo-counts.ts";
import type { Logger } from "../src/lib/logger.ts";
import { Metrics } from "../src/metrics/metrics.ts";
import { openWallets } from "./chain.ts";
import { TemporalCalls } from "../src/actors/calls.ts";
import { DeliveryKeyFiles } from "../src/agents/key-deliveries/delivery-keys.ts";
import { TemporalDeliveryKeys } from "../src/actors/delivery-keys.ts";
import { loadMasterKey } from "../src/secrets/load-master-key.ts";
import { Sealer } from "../src/secrets/sealer.ts";
import type { MasterKey } from "../src/secrets/master-key.ts";
import { verifyMasterKey } from "../src/secrets/verify-master-key.ts";
import type { Backends } from "./service-options.ts";
import { checkNamespace } from "./temporal-namespace.ts";
import { TemporalRenewal } from "./temporal-renewal.ts";
import type { RunningWorker, WorkerOptions } from "./worker.ts";

/** In DATA_DIR. */
const KEY_DELIVERY_FOLDER = "key-delivery";

/** What a process is to be: both, or one of them beside others of its kind. */
export interface Roles {
  readonly server: boolean;
  readonly worker: boolean;
}

export interface RoleOptions {
  readonly roles: Roles;
  readonly config: Config;
  readonly addresses: Addresses;
  /** Whether the databases are this machine's own, so that the master key may be stored with them. */
  readonly embedded: boolean;
  /** Where the server answers. */
  readonly http: HttpServer | null;
  /** Where metrics and health are answered apart. */
  readonly probesHttp?: HttpServer | null;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly logger: Logger;
  readonly clock: () => Date;
  /** For what only some set-ups need, such as a chain's settings. */
  readonly env: NodeJS.ProcessEnv;
  readonly decorateEffects?: (dependencies: EffectDependencies) => EffectDependencies;
  readonly decorateBackends?: (backends: Backends) => Backends;
  /** As for the core; only the bench says no. */
  readonly auditsPaymentDecisions?: boolean;
  /** As for the core; only tests set them. */
  readonly ledgerSettings?: LedgerSettings;
  /** Where requests are counted; by default in this process, or in MongoDB where it is one of several. */
  readonly counts?: Counts;
}

export interface RunningRoles {
  readonly connections: Connections;
  /** The journal of events; for publishing without a request, as the bench does. */
  readonly journal: EventJournal;
  /** Rejects when a part has failed for good. */
  readonly failed: Promise<never>;
  /** Requests finish, the worker ends its tasks, connections close. */
  stop(): Promise<void>;
  /** Where the first organization is made; null once there is one, and where no server runs. */
  setUpLink(): Promise<string | null>;
  /** Workflows that this process holds in memory. */
  cachedWorkflows(): number;
  /** Takes up renewed certificates and keys of Temporal now. */
  renewTemporal(): Promise<void>;
}

/** Starts what this process is to be, on engines that run. */
export async function startRoles(options: RoleOptions): Promise<RunningRoles> {
  const { addresses, clock, config, embedded, logger, roles } = options;
  const masterKey = await loadMasterKey({
    setting: config.masterKey,
    embeddedDataDir: embedded ? config.dataDir : null,
  });
  const connections = await connect(addresses);
  if (connections.temporalSecurity !== null) await checkNamespace(connections);
  await withRights(connections.db, async () => {
    await verifyMasterKey(connections.db, masterKey, clock());
    await ensureIndexes(addresses.mongodbUri, config.retention, logger);
  });
  const { decorateEffects, ledgerSettings } = options;
  const { db } = connections;
  // A process that is alone overwrites what it deletes; several share no disk.
  const deliveryKeys = embedded
    ? await DeliveryKeyFiles.in(join(config.dataDir, KEY_DELIVERY_FOLDER))
    : new TemporalDeliveryKeys(new TemporalCalls(connections.temporal, addresses.taskQueue));
  const { evmRpcUrl: rpcUrl } = addresses;
  const metrics = new Metrics();
  const wallets = openWallets({ rpcUrl, env: options.env, masterKey, db, clock, logger, metrics });
  await wallets?.start();
  const seal = auditSeal(masterKey.deriveKeys("audit-log"));
  const core = await createCore({
    connections,
    logger,
    clock,
    wallets,
    deliveryKeys,
    auditSeal: seal,
    paymentMacs: masterKey.macs("payment-proofs"),
    metrics,
    sealer: new Sealer(masterKey),
    webhookSettings: config.webhooks,
    mailSettings: config.mail,
    retention: config.retention,
    auditsPaymentDecisions: options.auditsPaymentDecisions ?? true,
    ...(decorateEffects === undefined ? {} : { decorateEffects }),
    ...(ledgerSettings === undefined ? {} : { ledgerSettings }),
  });
  // With engines of its own this is the only worker: no operator would set the current version in the engine.
  const buildId = embedded ? null : config.workerBuildId;
  const worker = roles.worker ? await runWorker({ connections, core, logger, buildId }) : null;
  const service = roles.server ? await runService(options, connections, core, masterKey) : null;
  const { probesHttp = null } = options;
  let isStopping = false;
  if (probesHttp !== null) await serveProbes(options, probesHttp, connections, core, () => isStopping);
  const renewal = renewTemporal(connections, worker, logger);
  const anchoring = roles.server ? openAnchoring(options, connections, wallets, seal) : null;
  return {
    connections,
    journal: core.journal,
    failed: worker?.failed ?? new Promise<never>(() => undefined),
    setUpLink: async () => (await service?.setUpLink()) ?? null,
    cachedWorkflows: () => worker?.cachedWorkflows() ?? 0,
    renewTemporal: async () => renewal?.look(),
    async stop() {
      isStopping = true;
      await renewal?.stop();
      core.webhooks.stopWatching();
      await service?.drain();
      await worker?.stop();
      await probesHttp?.drain();
      await core.auditLog.flush();
      await anchoring?.stop();
      await wallets?.stop();
      core.webhooks.close();
      await connections.close();
    },
  };
}

/** Takes up renewed certificates and keys from now on; null: an embedded Temporal has none. */
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

/** Anchors the audit log from now on. */
function openAnchoring(
  { clock, config, logger }: RoleOptions,
  { db }: Connections,
  wallets: Wallets | null,
  seal: AuditSeal,
): AuditAnchoring {
  const anchoring = new AuditAnchoring({
    db,
    seal,
    file: new AnchorFile(config.auditAnchorFile),
    clock,
    recordRoot: wallets === null ? null : (root) => wallets.recordRoot(root),
    onWarning: (message, err) => logger.warn({ err }, message),
  });
  if (config.auditAnchorSeconds > 0) anchoring.start(config.auditAnchorSeconds);
  return anchoring;
}

/** A process without a worker does not load the SDK for it. */
async function runWorker(options: WorkerOptions) {
  const { startWorker } = await import("./worker.ts");
  return startWorker(options);
}

async function serveProbes(
  { baseUrl, logger }: RoleOptions,
  http: HttpServer,
  connections: Connections,
  { metrics, wallets }: Core,
  draining: () => boolean,
): Promise<void> {
  const { createProbesApp } = await import("./http/probes-app.ts");
  const { missingParts } = await import("./readiness.ts");
  const missing = onceASecond(() => missingParts(connections, wallets));
  http.serve(createProbesApp({ baseUrl, logger, metrics, missing, draining }));
}

/** A process without a server does not load what answers requests. */
async function runService(options: RoleOptions, connections: Connections, core: Core, masterKey: MasterKey) {
  const { baseUrl, clock, config, counts, decorateBackends, http, logger, mcpUrl, roles } = options;
  if (http === null) throw new Error("a server needs its port");
  const { startService } = await import("./service.ts");
  const { allowedHosts, approvalWindowSeconds, connectionsPerAddress } = config;
  const { keyDeliveryWindowSeconds, trustedProxies, webauthn } = config;
  return startService({
    http,
    connections,
    core,
    masterKey,
    baseUrl,
    mcpUrl,
    relyingParty: relyingPartyOf(baseUrl, webauthn),
    defaultPlan: config.defaultPlan ?? (options.embedded ? "enterprise" : "free"),
    approvalWindowSeconds,
    keyDeliveryWindowSeconds,
    trustedProxies,
    connectionsPerAddress,
    allowedHosts,
    // A server without a worker of its own is one of several.
    counts: counts ?? (roles.worker ? new MemoryCounts() : await MongoCounts.on(connections.db)),
    clock,
    logger,
    showsMetrics: (options.probesHttp ?? null) === null,
    ...(decorateBackends === undefined ? {} : { decorateBackends }),
  });
}
