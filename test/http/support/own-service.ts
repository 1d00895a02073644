import { readAddresses, readConfig } from "../../../server/config.ts";
import { listen } from "../../../server/http/server.ts";
import { createLogger, type Logger } from "../../../server/logger.ts";
import { startRoles } from "../../../server/roles.ts";
import { Api } from "../../support/api.ts";
import type { TestService } from "../../support/service.ts";

export interface ServiceOn {
  /** Names the engines, the database and the task queue. */
  readonly env: NodeJS.ProcessEnv;
  readonly logger?: Logger;
  readonly worker?: boolean;
}

/** A service in this process on engines, a database and a task queue that the test names. */
export async function startServiceOn({ env, logger, worker = true }: ServiceOn) {
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
    logger: logger ?? createLogger({ level: "fatal", file: null }),
    clock: () => new Date(),
  });
  const { connections } = running;
  const stop = () => running.stop();
  return { baseUrl, connections, db: connections.db, env, api: new Api(baseUrl), stop };
}

/** Another server process, but for the process, beside one that runs; its issuer of sessions is the first one's. */
export async function secondService(first: TestService): Promise<TestService> {
  const second = await startServiceOn({ env: first.env, worker: false });
  return { ...second, organization: () => first.organization() };
}
