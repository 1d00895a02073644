import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Db } from "mongodb";
import type { EffectDependencies } from "../../src/payments/effects.ts";
import { createOrganizationOn } from "../../server/admin/create-organization.ts";
import { provisionOrganization } from "../../src/containers/provision.ts";
import {
  type CheckedInput,
  type CreatedOrganization,
  writeOrganization,
} from "../../src/identity/create-organization.ts";
import { type PasswordCost, Passwords } from "../../src/identity/passwords.ts";
import { readConfig } from "../../server/config.ts";
import type { GuardOptions } from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import type { Addresses, Connections } from "../../src/store/connections.ts";
import { listen } from "../../server/http/server.ts";
import type { Counts } from "../../src/limits/counts.ts";
import type { CardIssuerKind } from "../../src/payments/card-issuer.ts";
import { createLogger, type Logger } from "../../src/lib/logger.ts";
import { startRoles } from "../../server/roles.ts";
import type { Backends } from "../../server/service-options.ts";
import type { KeyWatchTimes } from "../../src/secrets/key-watch.ts";
import { LEDGER_SETTINGS } from "../../src/messages/ledger.ts";
import { Api } from "./api.ts";
import { accessProofsIn } from "./access-proofs.ts";
import { atEnd } from "./at-end.ts";
import { issuersAt, testCardNetwork } from "./card-network.ts";
import { dropAfterFile } from "./finished-databases.ts";
import { TEST_MASTER_KEY } from "./payloads.ts";

/** A whole service in this process, on the run's real engines, with a database and a task queue of its own. */
export interface TestService {
  readonly baseUrl: string;
  readonly db: Db;
  readonly connections: Connections;
  /** The environment that an admin command, or another role, beside it needs. */
  readonly env: NodeJS.ProcessEnv;
  readonly api: Api;
  /** A new organization with its signed-in owner, and `WITHOUT_LIMITS` unless others are given. */
  organization(limits?: OrganizationLimits): Promise<TestOrganization>;
  /** As a start prints it; null once there is an organization. */
  setUpLink(): Promise<string | null>;
  /** As the process would end. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

export type OrganizationLimits = Pick<CheckedInput, "plan" | "restPerMinute" | "mcpPerMinute">;

export interface TestOrganization extends CreatedOrganization {
  readonly email: string;
  readonly password: string;
  /** The owner's session token. */
  readonly token: string;
}

export interface TestServiceOptions {
  readonly approvalWindowSeconds?: number;
  readonly keyDeliveryWindowSeconds?: number;
  readonly auditAnchorSeconds?: number;
  readonly decorateEffects?: (dependencies: EffectDependencies) => EffectDependencies;
  readonly decorateBackends?: (backends: Backends) => Backends;
  readonly clock?: () => Date;
  /** Whether it runs workflows, by default; most of a start's cost. Without, it has neither agents nor payments. */
  readonly worker?: boolean;
  /** After how long its ledgers see to what is unconfirmed: 10, unless a test would only wait for that. */
  readonly sweepAfterSeconds?: number;
  /** `TRUSTED_PROXIES`. By default the tests are their own proxy: each request says where it comes from. */
  readonly trustedProxies?: string;
  readonly counts?: Counts;
  /** By default `TEST_PASSWORD_COST`. */
  readonly passwordCost?: PasswordCost;
  readonly keyWatchTimes?: KeyWatchTimes;
  /** Reach of the fetch of OAuth clients' documents; the public internet by default. */
  readonly clientDocuments?: GuardOptions;
  /** What the service is told that it is reached at, such as behind a proxy that speaks https. */
  readonly publicUrl?: string;
  /** The same where the service is reached at its own port, by this name. */
  readonly publicHost?: string;
  /** Another chain than the run's, or a way to it that a test can disturb; null: the wallet rail is not set up. */
  readonly evmRpcUrl?: string | null;
  /** The run's card network by default. */
  readonly cardIssuers?: readonly CardIssuerKind[];
  /** A service that has stopped, whose database and task queue this one continues. */
  readonly continues?: Pick<TestService, "env">;
  /** Further settings, as the environment names them. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Tests' receivers and shops are on this machine. */
export const REACHES_LOOPBACK = {
  WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8, ::1/128",
  X402_ALLOW_CIDRS: "127.0.0.0/8, ::1/128",
} as const;

/** So much that only tests of the limits themselves are ever limited. */
export const WITHOUT_LIMITS = {
  plan: "enterprise",
  restPerMinute: 1_000_000,
  mcpPerMinute: 1_000_000,
} as const;

/** Hashes of passwords are no part of what most tests test, and take 30 ms of processor each at their real cost. */
export const TEST_PASSWORD_COST: PasswordCost = { memoryCost: 8, timeCost: 1, parallelism: 1 };

export const testPasswords = (db: Db): Promise<Passwords> => Passwords.on(db, new Date(), TEST_PASSWORD_COST);

/** Short, since judging a password takes the longer the longer it is, and each organization's owner has this one. */
export const PASSWORD = "Tq7-vexbu-Zk";

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests with \`npm test\``);
  return value;
}

/** Everything that a service says goes into a file, which the run searches for secrets at its end. */
export const testLogger = (name: string): Logger =>
  createLogger({ level: "trace", file: join(required("TEST_LOG_DIR"), `${name}.log`) });

/** A service of the file's own, whose database goes with the file. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const service = await start(options);
  dropAfterFile(service.env["MONGODB_URI"] ?? "");
  return service;
}

/** A service that a lane's files share; see `sharedService`. */
export async function startLastingService(options: TestServiceOptions): Promise<TestService> {
  const service = await start(options);
  atEnd(() => service.stop());
  return service;
}

async function start(options: TestServiceOptions): Promise<TestService> {
  const id = options.continues?.env["TEMPORAL_TASK_QUEUE"] ?? `test_${randomBytes(8).toString("hex")}`;
  const uri = new URL(required("TEST_MONGODB_URI"));
  uri.pathname = `/${id}`;
  const { evmRpcUrl = required("TEST_EVM_RPC_URL"), passwordCost = TEST_PASSWORD_COST } = options;
  const addresses: Addresses = {
    mongodbUri: uri.toString(),
    temporalAddress: required("TEST_TEMPORAL_ADDRESS"),
    temporalNamespace: required("TEST_TEMPORAL_NAMESPACE"),
    readTemporalSecurity: null,
    taskQueue: id,
    evmRpcUrl,
  };
  const env = {
    MONGODB_URI: addresses.mongodbUri,
    TEMPORAL_ADDRESS: addresses.temporalAddress,
    TEMPORAL_NAMESPACE: addresses.temporalNamespace,
    TEMPORAL_TASK_QUEUE: id,
    ...(evmRpcUrl === null ? {} : { EVM_RPC_URL: evmRpcUrl }),
    MASTER_KEY: TEST_MASTER_KEY,
    AUDIT_ANCHOR_FILE: join(required("TEST_DATA_DIR"), "audit-anchors", `${id}.jsonl`),
    ...(options.keyDeliveryWindowSeconds === undefined
      ? {}
      : { KEY_DELIVERY_WINDOW_SECONDS: String(options.keyDeliveryWindowSeconds) }),
    ...(options.auditAnchorSeconds === undefined
      ? {}
      : { AUDIT_ANCHOR_SECONDS: String(options.auditAnchorSeconds) }),
    PORT: "0",
    TRUSTED_PROXIES: options.trustedProxies ?? "loopback",
    ...REACHES_LOOPBACK,
    ...(options.approvalWindowSeconds === undefined
      ? {}
      : { APPROVAL_WINDOW_SECONDS: String(options.approvalWindowSeconds) }),
    ...options.settings,
  };
  const backends: Backends[] = [];
  const http = await listen("127.0.0.1", 0);
  const baseUrl = `http://127.0.0.1:${http.port}`;
  const running = await startRoles({
    roles: { server: true, worker: options.worker ?? true },
    config: readConfig(env, "127.0.0.1"),
    addresses,
    embedded: false,
    http,
    baseUrl: options.publicUrl ?? `http://${options.publicHost ?? "127.0.0.1"}:${http.port}`,
    mcpUrl: baseUrl,
    logger: testLogger(id),
    clock: options.clock ?? (() => new Date()),
    passwordCost,
    cardIssuers: options.cardIssuers ?? issuersAt(await testCardNetwork()),
    ...(options.keyWatchTimes && { keyWatchTimes: options.keyWatchTimes }),
    ...(options.clientDocuments && { clientDocuments: options.clientDocuments }),
    env,
    ...(options.counts === undefined ? {} : { counts: options.counts }),
    ...(options.sweepAfterSeconds === undefined
      ? {}
      : { ledgerSettings: { ...LEDGER_SETTINGS, sweepAfterSeconds: options.sweepAfterSeconds } }),
    ...(options.decorateEffects === undefined ? {} : { decorateEffects: options.decorateEffects }),
    decorateBackends: (plain) => {
      backends.push(plain);
      return options.decorateBackends?.(plain) ?? plain;
    },
  });
  const api = new Api(baseUrl);
  return {
    baseUrl,
    db: running.connections.db,
    connections: running.connections,
    env,
    api,
    async organization(limits = WITHOUT_LIMITS) {
      const { db } = running.connections;
      const passwords = await Passwords.on(db, new Date(), passwordCost);
      return newOrganization({ api, db, env, passwords }, backends[0], limits);
    },
    setUpLink: () => running.setUpLink(),
    failed: running.failed,
    stop: () => running.stop(),
  };
}

/** As `create-organization` makes it, but in one go and without a judgement of the password, which other tests show. */
async function newOrganization(
  { api, db, env, passwords }: Pick<TestService, "api" | "db" | "env"> & { readonly passwords: Passwords },
  backends: Backends | undefined,
  limits: OrganizationLimits,
): Promise<TestOrganization> {
  if (backends === undefined) throw new Error("the service runs");
  const { actors, auditLog } = backends;
  const owner = newOwner();
  const accessProofs = accessProofsIn(env);
  const making = { accessProofs, now: new Date(), occasion: "command", passwords } as const;
  const created = await writeOrganization(db, { ...owner, ...limits }, making);
  if (!created.ok) throw new Error(created.refusal.message);
  const { organizationId, projectId, teamId } = created.value;
  // A treasury is recorded with its first use.
  const treasuries = { record: () => Promise.resolve(null) };
  await provisionOrganization(
    { accessProofs, auditLog, db, ledgerStarter: actors, treasuries },
    { organizationId, defaultProjectId: projectId, defaultTeamId: teamId },
    new Date(),
  );
  return signedIn(api, owner, created.value);
}

/** By `create-organization`, which a worker has to run for. */
export async function organizationByCommand(
  { api, connections, env }: Pick<TestService, "api" | "connections" | "env">,
  limits: OrganizationLimits = WITHOUT_LIMITS,
): Promise<TestOrganization> {
  const owner = newOwner();
  const passwords = await testPasswords(connections.db);
  const input = { ...owner, ...limits };
  const proofs = accessProofsIn(env);
  return signedIn(api, owner, await createOrganizationOn(connections, proofs, input, "command", passwords));
}

const newOwner = () => ({
  name: "Test",
  ownerEmail: `owner-${randomBytes(6).toString("hex")}@example.com`,
  ownerPassword: PASSWORD,
});

async function signedIn(
  api: Api,
  { ownerEmail: email, ownerPassword: password }: ReturnType<typeof newOwner>,
  created: CreatedOrganization,
): Promise<TestOrganization> {
  return { ...created, email, password, token: await api.signIn(email, password) };
}

let shared: Promise<TestService> | null = null;

/** The service that tests share which change nothing of it but their own organizations. */
export const sharedService = (): Promise<TestService> => (shared ??= startLastingService({}));
