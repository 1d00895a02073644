import { randomUUID } from "node:crypto";
import { createOrganization } from "../../../server/admin/create-organization.ts";
import { readAddresses, readConfig } from "../../../server/config.ts";
import { listen } from "../../../server/http/server.ts";
import { createLogger, type Logger } from "../../../server/logger.ts";
import { startRoles } from "../../../server/roles.ts";
import { Api } from "../../support/api.ts";
import { PASSWORD, type TestOrganization, type TestService } from "../../support/service.ts";

export interface ServiceOn {
  /** Names the engines, the database and the task queue. */
  readonly env: NodeJS.ProcessEnv;
  readonly logger?: Logger;
  readonly worker?: boolean;
}

/** A service in this process on engines, a database and a task queue that the test names. */
export async function startServiceOn({ env, logger, worker = true }: ServiceOn): Promise<TestService> {
  const http = await listen("127.0.0.1", 0);
  const baseUrl = `http://127.0.0.1:${http.port}`;
  const running = await startRoles({
    roles: { server: true, worker },
    config: readConfig(env, "127.0.0.1"),
    addresses: readAddresses(env),
    embedded: false,
    http,
    baseUrl,
    mcpUrl: baseUrl,
    logger: logger ?? createLogger({ level: process.env["TEST_LOG_LEVEL"] ?? "fatal", file: null }),
    clock: () => new Date(),
  });
  const { connections } = running;
  const api = new Api(baseUrl);
  const organization = () => newOrganization(env, api);
  const setUpLink = () => running.setUpLink();
  const stop = () => running.stop();
  return { baseUrl, connections, db: connections.db, env, api, organization, setUpLink, stop };
}

async function newOrganization(env: NodeJS.ProcessEnv, api: Api): Promise<TestOrganization> {
  const email = `owner-${randomUUID()}@example.com`;
  const owner = { name: "Test", ownerEmail: email, ownerPassword: PASSWORD, plan: "enterprise" } as const;
  const created = await createOrganization(env, owner);
  return { ...created, email, password: PASSWORD, token: await api.signIn(email, PASSWORD) };
}

/** Another server process, but for the process, beside one that runs. Each signs sessions as their own address. */
export const secondService = (first: TestService): Promise<TestService> =>
  startServiceOn({ env: first.env, worker: false });
