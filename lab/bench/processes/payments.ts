import { type Role, runRole } from "./role.ts";
import { type ServiceConfig, startService } from "./service.ts";

/** The service and nothing else. */
await runRole(async (config): Promise<Role> => {
  const { http, running, status } = await startService(config as ServiceConfig);
  return {
    port: http.port,
    answer: () => Promise.resolve(status()),
    stop: () => running.stop(),
  };
});
