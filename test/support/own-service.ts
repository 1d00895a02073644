import { randomUUID } from "node:crypto";
import { readAddresses, readConfig } from "../../server/config.ts";
import { listen } from "../../server/http/server.ts";
import type { Counts } from "../../src/limits/counts.ts";
import type { Logger } from "../../src/lib/logger.ts";
import type { Backends } from "../../server/service-options.ts";
import { type RunningRoles, startRoles } from "../../server/roles.ts";
import { Api } from "./api.ts";
import {
  organizationByCommand,
  type OrganizationLimits,
  REACHES_LOOPBACK,
  TEST_PASSWORD_COST,
  testLogger,
  type TestService,
} from "./service.ts";

export interface ServiceOn {
  /** Names the engines, the database and the task queue. */
  readonly env: NodeJS.ProcessEnv;
  readonly logger?: Logger;
  readonly worker?: boolean;
  readonly clock?: () => Date;
  readonly counts?: Counts;
  readonly decorateBackends?: (backends: Backends) => Backends;
}

/** A service in this process on engines, a database and a task queue that the test names. */
export async function startServiceOn({
  clock = () => new Date(),
  counts,
  decorateBackends,
  env: engines,
  logger,
  worker = true,
}: ServiceOn): Promise<TestService & Pick<RunningRoles, "renewTemporal">> {
  // The tests are their own proxy: each request says where it comes from.
  const env = { TRUSTED_PROXIES: "loopback", ...REACHES_LOOPBACK, ...engines };
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
    logger: logger ?? testLogger(`own-${randomUUID()}`),
    clock,
    passwordCost: TEST_PASSWORD_COST,
    env,
    ...(counts === undefined ? {} : { counts }),
    ...(decorateBackends === undefined ? {} : { decorateBackends }),
  });
  const { connections, failed } = running;
  const api = new Api(baseUrl);
  const organization = (limits?: OrganizationLimits) =>
    organizationByCommand({ api, connections, env }, limits);
  const setUpLink = () => running.setUpLink();
  const stop = () => running.stop();
  const renewTemporal = () => running.renewTemporal();
  return {
    baseUrl,
    connections,
    db: connections.db,
    env,
    api,
    organization,
    setUpLink,
    failed,
    stop,
    renewTemporal,
  };
}

/** Another server process, but for the process, beside one that runs. Each signs sessions as their own address. */
export const secondService = (
  { env }: TestService,
  options: Pick<ServiceOn, "decorateBackends"> = {},
): Promise<TestService> => startServiceOn({ ...options, env, worker: false });
