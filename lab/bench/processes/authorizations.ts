import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { type Role, runRole } from "./role.ts";
import { type ServiceConfig, startService } from "./service.ts";

interface Exchange {
  readonly request: IncomingMessage;
}

/**
 * The service, which also times its answers to card networks: from the arrival of a request's headers, which come in
 * one packet with the rest of it, until the answer is handed to the operating system.
 */
await runRole(async (config): Promise<Role> => {
  const { http, running } = await startService(config as ServiceConfig);
  const arrivals = new WeakMap<IncomingMessage, number>();
  let timesMs: number[] = [];
  subscribe("http.server.request.start", (message) => {
    arrivals.set((message as Exchange).request, performance.now());
  });
  subscribe("http.server.response.finish", (message) => {
    const { request } = message as Exchange;
    const arrivedMs = arrivals.get(request);
    if (arrivedMs !== undefined && request.url?.endsWith("/authorizations") === true)
      timesMs.push(performance.now() - arrivedMs);
  });
  return {
    port: http.port,
    answer: () => {
      const answered = timesMs;
      timesMs = [];
      return Promise.resolve(answered);
    },
    stop: () => running.stop(),
  };
});
