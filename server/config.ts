import { join, resolve } from "node:path";
import { z } from "zod";
import type { WebhookSettings } from "../src/webhooks/settings.ts";
import type { Retention } from "../src/store/retention.ts";
import { BACKOFF_SECONDS } from "../src/domain/webhooks/attempts.ts";
import { DEFAULT_TASK_QUEUE } from "../src/messages/common.ts";
import { dnsServers } from "../src/identity/sso/domain-proofs.ts";
import { foreignOrigins, type RelyingPartySettings, relyingPartyOf } from "../src/identity/relying-party.ts";
import { type Plan, PLANS } from "../src/store/identity-documents.ts";
import type { Addresses } from "../src/store/connections.ts";
import { isLoopback, mailFrom, type MailSettings, mailSettings, smtpUrl } from "../src/mail/settings.ts";
import { checkedMasterKeySetting, type MasterKeySetting } from "../src/secrets/load-master-key.ts";
import { ConfigError } from "../src/lib/config-error.ts";
import {
  cidrs,
  hostNames,
  internalUrl,
  listed,
  numbers,
  origins,
  rootUrl,
  rpId,
  type TrustedProxies,
  trustedProxies,
  url,
  whole,
} from "./config-values.ts";
import { readTemporal } from "./temporal-settings.ts";

export interface Config {
  readonly host: string;
  readonly port: number;
  /** Separate port of metrics and health. If null, a server serves them on its main port and a worker not at all. */
  readonly metricsPort: number | null;
  /** OTLP endpoint for traces; null disables tracing. */
  readonly tracesEndpoint: string | null;
  /** Maximum idle time of a connection between requests. */
  readonly keepAliveSeconds: number;
  /** Timeout from SIGTERM to the end of the process. */
  readonly drainSeconds: number;
  /** Address, on a separate port, for commands forwarded by other servers; null if none are accepted or forwarded. */
  readonly internalUrl: URL | null;
  /** Null: derived from the port. */
  readonly baseUrl: string | null;
  readonly mcpUrl: string | null;
  readonly dataDir: string;
  /** Null if not set. */
  readonly masterKey: MasterKeySetting | null;
  /** See `DomainProofs`. Null if domains need no proof. */
  readonly ssoDomainServers: readonly string[] | null;
  /** Whether payloads in Temporal are encrypted; null: unless Temporal is embedded. */
  readonly payloadEncryption: boolean | null;
  /** Token for decoding payloads with the codec server; null if there is none. */
  readonly codecToken: string | null;
  /** Origins of Temporal UIs that may use the codec server; null for the embedded UI's. */
  readonly codecOrigins: readonly string[] | null;
  /** Plan of the organization created by the set-up link; null: `enterprise` with embedded engines, else `free`. */
  readonly defaultPlan: Plan | null;
  /** Secret that signs Stripe's subscription events; null disables billing. */
  readonly billingSecret: string | null;
  readonly approvalWindowSeconds: number;
  /** Maximum time that a payment's card waits for its first authorization. */
  readonly cardReadySeconds: number;
  /** Period in which replays of a machine's create deliver the agent's first key again. */
  readonly keyDeliveryWindowSeconds: number;
  /**
   * Interval at which the heads of the audit log's chains are written to the anchor file outside the database; 0: only
   * when a server stops.
   */
  readonly auditAnchorSeconds: number;
  /** Null: anchors go to the log. */
  readonly auditAnchorFile: string | null;
  readonly logLevel: string;
  readonly trustedProxies: TrustedProxies;
  /** Maximum connections per address, except a trusted proxy's; null: a quarter of all. */
  readonly connectionsPerAddress: number | null;
  /** Host names accepted by MCP, pages and requests with cookies, besides those in the service's URLs. */
  readonly allowedHosts: readonly string[];
  /** Relying party of passkeys, as far as it differs from the base URL. */
  readonly webauthn: RelyingPartySettings;
  readonly webhooks: WebhookSettings;
  /** Networks in which shops may be reached besides the public internet, for development. */
  readonly shopCidrs: readonly string[];
  readonly retention: Retention;
  /** Version by which the engine routes tasks to this worker's code; null: any worker gets any task. */
  readonly workerBuildId: string | null;
  /** Null disables mail. */
  readonly mail: MailSettings | null;
}

/**
 * Returns the host name of the service's own URLs. On this machine it is localhost, since browsers create no passkeys
 * for an address.
 */
export const hostNameOf = (host: string): string =>
  isLoopback(host) || host === "0.0.0.0" || host === "::" ? "localhost" : host;

/**
 * Exceeds the 60 s for which proxies keep an idle connection, so that the proxy closes first and no request meets a
 * closed connection.
 */
export const KEEP_ALIVE_DEFAULT_SECONDS = 75;

/** Stays below the 30 s that Kubernetes allows after SIGTERM. */
const DRAIN_DEFAULT_SECONDS = 25;

const BACKOFFS_MAX = 10;
const PORTS_MAX = 100;

/** Retention in days; 0 for unlimited. The minimum exceeds any window and any retry of a request. */
const recordRetentionDays = whole(0, 3_650).refine(
  (days) => days !== 1,
  "must be 0 (for good), or a whole number from 2 to 3650.",
);
const EVENT_DAYS = 90;

const environment = z.object({
  HOST: z.string().min(1).optional(),
  PORT: whole(0, 65_535).default(8080),
  METRICS_PORT: z
    .literal("")
    .transform(() => null)
    .or(whole(0, 65_535))
    .optional(),
  KEEP_ALIVE_SECONDS: whole(1, 3_600).default(KEEP_ALIVE_DEFAULT_SECONDS),
  DRAIN_SECONDS: whole(1, 3_600).default(DRAIN_DEFAULT_SECONDS),
  INTERNAL_URL: internalUrl.optional(),
  BASE_URL: rootUrl.optional(),
  MCP_URL: url.optional(),
  DATA_DIR: z.string().min(1).default(".data"),
  MASTER_KEY: z.string().optional(),
  MASTER_KEY_FILE: z.string().optional(),
  MASTER_KEYS: z.string().optional(),
  MASTER_KEYS_FILE: z.string().optional(),
  MASTER_KEYS_COMMAND: z.string().optional(),
  TEMPORAL_PAYLOAD_ENCRYPTION: z
    .enum(["true", "false", ""], "must be true or false")
    .transform((text) => (text === "" ? null : text === "true"))
    .default(null),
  TEMPORAL_CODEC_TOKEN: z
    .string()
    .regex(/^([\x21-\x7e]{32,1024})?$/, "must be 32 to 1,024 printable characters without spaces")
    .default(""),
  TEMPORAL_CODEC_ORIGINS: z
    .string()
    .transform(listed)
    .refine(
      (all) =>
        all.every((each) => URL.canParse(each) && /^https?:/.test(each) && new URL(each).origin === each),
      "Name the origins of Temporal UIs, such as `https://temporal.example.com`.",
    )
    .optional(),
  DEFAULT_PLAN: z.enum(PLANS).optional(),
  APPROVAL_WINDOW_SECONDS: whole(1, 31_536_000).default(86_400),
  STRIPE_BILLING_SECRET: z
    .string()
    .regex(/^whsec_\S{16,}$/, "must be a signing secret, whsec_…")
    .optional(),
  CARD_READY_SECONDS: whole(1, 604_800).default(3_600),
  KEY_DELIVERY_WINDOW_SECONDS: whole(1, 86_400).default(1_800),
  AUDIT_ANCHOR_SECONDS: whole(0, 86_400).default(3_600),
  AUDIT_ANCHOR_FILE: z.string().min(1).optional(),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
  TRUSTED_PROXIES: trustedProxies,
  CONNECTIONS_PER_ADDRESS: whole(1, 10_000).optional(),
  ALLOWED_HOSTS: hostNames,
  WEBAUTHN_RP_ID: rpId.optional(),
  WEBAUTHN_ORIGINS: origins.optional(),
  SSO_DOMAIN_DNS: dnsServers,
  WEBHOOK_ALLOW_CIDRS: cidrs,
  WEBHOOK_ALLOW_PORTS: numbers(1, 65_535, PORTS_MAX).default([]),
  WEBHOOK_CA_FILE: z.string().min(1).optional(),
  WEBHOOK_BACKOFF_SECONDS: numbers(1, 604_800, BACKOFFS_MAX).default([...BACKOFF_SECONDS]),
  X402_ALLOW_CIDRS: cidrs,
  WEBHOOK_RETENTION_DAYS: whole(1, 3_650).default(30),
  EVENT_RETENTION_DAYS: recordRetentionDays.optional(),
  CREATE_RETENTION_DAYS: recordRetentionDays.default(0),
  KEY_DELIVERY_RETENTION_DAYS: recordRetentionDays.default(30),
  APPROVAL_RETENTION_DAYS: recordRetentionDays.default(400),
  SMTP_URL: smtpUrl,
  SMTP_CA_FILE: z.string().min(1).optional(),
  MAIL_FROM: mailFrom,
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .literal("")
    .transform(() => null)
    .or(url)
    .default(null),
  WORKER_BUILD_ID: z
    .string()
    .regex(/^[\w.+-]{0,128}$/, "must be letters, digits, and . + - _, 128 at most")
    .optional(),
});

/** Reads the configuration. By default an embedded service listens on loopback, a server role on every interface. */
export function readConfig(env: NodeJS.ProcessEnv, defaultHost: string): Config {
  const parsed = environment.safeParse(env);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ConfigError(
      `${issue?.path.join(".") ?? "The environment"}: ${issue?.message ?? "is not usable"}`,
    );
  }
  const value = parsed.data;
  return {
    host: value.HOST ?? defaultHost,
    port: value.PORT,
    metricsPort: value.METRICS_PORT ?? null,
    keepAliveSeconds: value.KEEP_ALIVE_SECONDS,
    drainSeconds: value.DRAIN_SECONDS,
    internalUrl: value.INTERNAL_URL ?? null,
    baseUrl: value.BASE_URL ?? null,
    mcpUrl: value.MCP_URL ?? null,
    dataDir: resolve(value.DATA_DIR),
    masterKey: checkedMasterKeySetting(value),
    payloadEncryption: value.TEMPORAL_PAYLOAD_ENCRYPTION,
    codecToken: value.TEMPORAL_CODEC_TOKEN === "" ? null : value.TEMPORAL_CODEC_TOKEN,
    codecOrigins: value.TEMPORAL_CODEC_ORIGINS ?? null,
    defaultPlan: value.DEFAULT_PLAN ?? null,
    ssoDomainServers: value.SSO_DOMAIN_DNS,
    billingSecret: value.STRIPE_BILLING_SECRET ?? null,
    approvalWindowSeconds: value.APPROVAL_WINDOW_SECONDS,
    cardReadySeconds: value.CARD_READY_SECONDS,
    keyDeliveryWindowSeconds: value.KEY_DELIVERY_WINDOW_SECONDS,
    auditAnchorSeconds: value.AUDIT_ANCHOR_SECONDS,
    auditAnchorFile:
      value.AUDIT_ANCHOR_FILE === "-"
        ? null
        : resolve(value.AUDIT_ANCHOR_FILE ?? join(value.DATA_DIR, "audit-anchors.jsonl")),
    logLevel: value.LOG_LEVEL,
    trustedProxies: value.TRUSTED_PROXIES,
    connectionsPerAddress: value.CONNECTIONS_PER_ADDRESS ?? null,
    allowedHosts: value.ALLOWED_HOSTS,
    webauthn: webauthnOf(value, value.HOST ?? defaultHost),
    webhooks: webhooksOf(value),
    shopCidrs: value.X402_ALLOW_CIDRS,
    retention: retentionOf(value),
    tracesEndpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT,
    workerBuildId: (value.WORKER_BUILD_ID ?? "") === "" ? null : (value.WORKER_BUILD_ID ?? null),
    mail: mailOf(value),
  };
}

function mailOf(value: z.output<typeof environment>): MailSettings | null {
  const settings = mailSettings(value);
  if (typeof settings === "string") throw new ConfigError(settings);
  return settings;
}

/** Refuses a retention that would remove deliveries before their last attempt. */
function webhooksOf(value: z.output<typeof environment>): WebhookSettings {
  const { WEBHOOK_BACKOFF_SECONDS: backoffSeconds, WEBHOOK_RETENTION_DAYS: retentionDays } = value;
  const attemptsSeconds = backoffSeconds.reduce((sum, seconds) => sum + seconds, 0);
  if (attemptsSeconds >= retentionDays * DAY_SECONDS) {
    throw new ConfigError("WEBHOOK_RETENTION_DAYS: must exceed the sum of WEBHOOK_BACKOFF_SECONDS.");
  }
  return {
    allowCidrs: value.WEBHOOK_ALLOW_CIDRS,
    allowPorts: value.WEBHOOK_ALLOW_PORTS,
    caFile: value.WEBHOOK_CA_FILE === undefined ? null : resolve(value.WEBHOOK_CA_FILE),
    backoffSeconds,
    retentionDays,
  };
}

/** Refuses a retention of events shorter than a replay needs. */
function retentionOf(value: z.output<typeof environment>): Retention {
  const { WEBHOOK_RETENTION_DAYS: replayedDays } = value;
  const eventDays = value.EVENT_RETENTION_DAYS ?? Math.max(EVENT_DAYS, replayedDays);
  if (eventDays !== 0 && eventDays < replayedDays) {
    throw new ConfigError(
      "EVENT_RETENTION_DAYS: must be 0 or at least WEBHOOK_RETENTION_DAYS, since webhooks can be replayed that far back.",
    );
  }
  return {
    eventDays,
    createDays: value.CREATE_RETENTION_DAYS,
    keyDeliveryDays: value.KEY_DELIVERY_RETENTION_DAYS,
    approvalDays: value.APPROVAL_RETENTION_DAYS,
  };
}

const DAY_SECONDS = 86_400;

/** Refuses settings with which every browser would reject passkeys. Unset ones follow from the base URL. */
function webauthnOf(value: z.output<typeof environment>, host: string): RelyingPartySettings {
  const settings = { rpId: value.WEBAUTHN_RP_ID ?? null, origins: value.WEBAUTHN_ORIGINS ?? null };
  if (settings.rpId === null && settings.origins === null) return settings;
  const party = relyingPartyOf(value.BASE_URL ?? `http://${hostNameOf(host)}`, settings);
  const [foreign] = foreignOrigins(party);
  if (foreign === undefined) return settings;
  throw new ConfigError(
    settings.origins === null
      ? `WEBAUTHN_RP_ID: ${party.id} is neither the domain of BASE_URL nor a parent of it; if the pages are elsewhere, set WEBAUTHN_ORIGINS to their origins.`
      : `WEBAUTHN_ORIGINS: ${foreign} is neither at ${party.id} nor at a subdomain of it; set WEBAUTHN_RP_ID to a domain that all origins share.`,
  );
}

/** Variables that name external engines. Engines without one are started embedded. */
const ENGINE_VARIABLES = ["MONGODB_URI", "TEMPORAL_ADDRESS", "EVM_RPC_URL"] as const;

/**
 * Refuses to expose embedded engines to other machines: they are for trials, and every local user can reach Temporal.
 * Throws `ConfigError` with the remedy.
 */
export function refuseExposure({ host }: Pick<Config, "host">, env: NodeJS.ProcessEnv): void {
  const embedded = ENGINE_VARIABLES.filter((name) => (env[name] ?? "") === "");
  if (embedded.length === 0 || isLoopback(host)) return;
  throw new ConfigError(
    `HOST: ${host} can be reached from other machines, and embedded engines must not be: leave HOST out, or set ${embedded.join(", ")} to engines of your own.`,
  );
}

/** Returns the chain's address; null if the wallet rail is not configured. */
export function readEvmRpcUrl(env: NodeJS.ProcessEnv): string | null {
  const value = env["EVM_RPC_URL"] ?? "";
  if (value === "") return null;
  if (z.url({ protocol: /^https?$/ }).safeParse(value).success) return value;
  throw new ConfigError("EVM_RPC_URL: Invalid URL");
}

export const encryptsPayloads = (
  { payloadEncryption }: Pick<Config, "payloadEncryption">,
  { readTemporalSecurity }: Pick<Addresses, "readTemporalSecurity">,
): boolean => payloadEncryption ?? readTemporalSecurity !== null;

/** Reads `TEMPORAL_TASK_QUEUE`, which services that share a namespace set. */
export function readTaskQueue(env: NodeJS.ProcessEnv): string {
  const value = env["TEMPORAL_TASK_QUEUE"] ?? "";
  return value === "" ? DEFAULT_TASK_QUEUE : value;
}

/** Returns the address of the simulated card network; null without one. */
export function readCardNetworkUrl(env: NodeJS.ProcessEnv): string | null {
  const value = env["CARD_NETWORK_URL"] ?? "";
  if (value === "") return null;
  const parsed = url.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ConfigError("CARD_NETWORK_URL is not a URL.");
}

/** Reads the addresses of external engines. A separate server or worker starts none itself. */
export function readAddresses(env: NodeJS.ProcessEnv): Addresses {
  const { address, namespace, readSecurity } = readTemporal(env);
  const mongodbUri = env["MONGODB_URI"] ?? "";
  const needed = { MONGODB_URI: mongodbUri, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === "" ? [name] : []));
  if (missing.length > 0) {
    throw new ConfigError(
      `Set ${missing.join(", ")}: this role connects to existing engines and starts none.`,
    );
  }
  return {
    mongodbUri,
    temporalAddress: address,
    temporalNamespace: namespace,
    readTemporalSecurity: readSecurity,
    taskQueue: readTaskQueue(env),
    evmRpcUrl: readEvmRpcUrl(env),
  };
}
