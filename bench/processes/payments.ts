import { readAddresses, readConfig } from "../../server/config.ts";
import { listen } from "../../server/http/server.ts";
import { createLogger } from "../../server/logger.ts";
import { startRoles } from "../../server/roles.ts";
import { installRuntime } from "../../server/worker.ts";
import { type Role, runRole } from "./role.ts";

export interface PaymentsConfig {
  readonly env: NodeJS.ProcessEnv;
  readonly logFile: string;
}

/** The service as the all-in-one runs it, server and worker in one process, on engines that are there. */
await runRole(async (config): Promise<Role> => {
  const { env, logFile } = config as PaymentsConfig;
  const logger = createLogger({ level: "info", file: logFile });
  const http = await listen("127.0.0.1", 0);
  const baseUrl = `http://127.0.0.1:${String(http.port)}`;
  installRuntime(logger);
  const running = await startRoles({
    roles: { server: true, worker: true },
    config: readConfig(env, "127.0.0.1"),
    addresses: readAddresses(env),
    embedded: false,
    http,
    baseUrl,
    mcpUrl: baseUrl,
    logger,
    clock: () => new Date(),
    env,
  });
  return { port: http.port, stop: () => running.stop() };
});
