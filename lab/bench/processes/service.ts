import { readAddresses, readCardNetworkUrl, readConfig } from "../../../server/config.ts";
import { type HttpServer, listen } from "../../../server/http/server.ts";
import { createLogger } from "../../../src/lib/logger.ts";
import { type Roles, type RunningRoles, startRoles } from "../../../server/roles.ts";
import { installRuntime } from "../../../server/worker.ts";

export interface ServiceConfig {
  readonly env: NodeJS.ProcessEnv;
  readonly logFile: string;
  /** Both in one process unless it is said. */
  readonly roles?: Roles;
  /** Whether decisions on payments are kept in the audit log; they are unless it is said. */
  readonly auditsPaymentDecisions?: boolean;
}

/** Status that the process reports on request. */
export interface ServiceStatus {
  readonly residentBytes: number;
  readonly cachedWorkflows: number;
}

export interface Service {
  readonly http: HttpServer;
  readonly running: RunningRoles;
  readonly status: () => ServiceStatus;
}

/** The service as the all-in-one runs it, server and worker in one process, or one of them, on engines that are there. */
export async function startService(config: ServiceConfig): Promise<Service> {
  const { env, auditsPaymentDecisions = true, logFile, roles = { server: true, worker: true } } = config;
  const logger = createLogger({ level: "info", file: logFile });
  // A worker alone does without, but every process of the bench has a port.
  const http = await listen("127.0.0.1", 0);
  const baseUrl = `http://127.0.0.1:${String(http.port)}`;
  installRuntime(logger);
  const running = await startRoles({
    roles,
    config: readConfig(env, "127.0.0.1"),
    addresses: readAddresses(env),
    embedded: false,
    cardNetworkUrl: readCardNetworkUrl(env),
    http,
    baseUrl,
    mcpUrl: baseUrl,
    logger,
    clock: () => new Date(),
    env,
    auditsPaymentDecisions,
  });
  return {
    http,
    running,
    status: () => ({
      residentBytes: process.memoryUsage.rss(),
      cachedWorkflows: running.cachedWorkflows(),
    }),
  };
}
