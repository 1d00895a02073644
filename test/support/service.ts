import { randomBytes } from "node:crypto";
import type { Db } from "mongodb";
import type { EffectDependencies } from "../../activities/effects.ts";
import { createOrganization } from "../../server/admin/create-organization.ts";
import type { CreatedOrganization } from "../../server/auth/create-organization.ts";
import { readConfig } from "../../server/config.ts";
import type { Addresses, Connections } from "../../server/connections.ts";
import { listen } from "../../server/http/server.ts";
import { createLogger } from "../../server/logger.ts";
import { startRoles } from "../../server/roles.ts";
import { Api } from "./api.ts";

/** A whole service in this process, on the run's real engines, with a database and a task queue of its own. */
export interface TestService {
  readonly baseUrl: string;
  readonly db: Db;
  readonly connections: Connections;
  /** The environment that an admin command, or another role, beside it needs. */
  readonly env: NodeJS.ProcessEnv;
  readonly api: Api;
  /** A new organization with its signed-in owner. */
  organization(): Promise<TestOrganization>;
  /** As a start prints it; null once there is an organization. */
  setUpLink(): Promise<string | null>;
  stop(): Promise<void>;
}

export interface TestOrganization extends CreatedOrganization {
  readonly email: string;
  readonly password: string;
  /** The owner's session token. */
  readonly token: string;
}

export interface TestServiceOptions {
  readonly approvalWindowSeconds?: number;
  readonly decorateEffects?: (dependencies: EffectDependencies) => EffectDependencies;
  readonly clock?: () => Date;
  /** What the service is told that it is reached at, such as behind a proxy that speaks https. */
  readonly publicUrl?: string;
}

export const PASSWORD = "correct horse battery staple";

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests with \`npm test\``);
  return value;
}

export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const id = `test_${randomBytes(8).toString("hex")}`;
  const uri = new URL(required("TEST_MONGODB_URI"));
  uri.pathname = `/${id}`;
  const addresses: Addresses = {
    mongodbUri: uri.toString(),
    temporalAddress: required("TEST_TEMPORAL_ADDRESS"),
    temporalNamespace: required("TEST_TEMPORAL_NAMESPACE"),
    taskQueue: id,
  };
  const env = {
    MONGODB_URI: addresses.mongodbUri,
    TEMPORAL_ADDRESS: addresses.temporalAddress,
    TEMPORAL_NAMESPACE: addresses.temporalNamespace,
    TEMPORAL_TASK_QUEUE: id,
    MASTER_KEY: "a-master-key-for-tests-long-enough-to-be-one",
    PORT: "0",
    ...(options.approvalWindowSeconds === undefined
      ? {}
      : { APPROVAL_WINDOW_SECONDS: String(options.approvalWindowSeconds) }),
  };
  const http = await listen("127.0.0.1", 0);
  const baseUrl = `http://127.0.0.1:${http.port}`;
  const running = await startRoles({
    roles: { server: true, worker: true },
    config: readConfig(env, "127.0.0.1"),
    addresses,
    embedded: false,
    http,
    baseUrl: options.publicUrl ?? baseUrl,
    mcpUrl: baseUrl,
    logger: createLogger({ level: process.env["TEST_LOG_LEVEL"] ?? "fatal", file: null }),
    clock: options.clock ?? (() => new Date()),
    ...(options.decorateEffects === undefined ? {} : { decorateEffects: options.decorateEffects }),
  });
  const api = new Api(baseUrl);
  return {
    baseUrl,
    db: running.connections.db,
    connections: running.connections,
    env,
    api,
    organization: () => newOrganization(env, api),
    setUpLink: () => running.setUpLink(),
    stop: () => running.stop(),
  };
}

async function newOrganization(env: NodeJS.ProcessEnv, api: Api): Promise<TestOrganization> {
  const email = `owner-${randomBytes(6).toString("hex")}@example.com`;
  const created = await createOrganization(env, {
    name: "Test",
    ownerEmail: email,
    ownerPassword: PASSWORD,
    plan: "enterprise",
  });
  return { ...created, email, password: PASSWORD, token: await api.signIn(email, PASSWORD) };
}

let shared: Promise<TestService> | null = null;

/** The service that tests share which change nothing of it but their own organizations. */
export const sharedService = (): Promise<TestService> => (shared ??= startTestService());

export async function closeSharedService(): Promise<void> {
  await (await shared)?.stop();
}
