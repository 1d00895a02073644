import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { type Role, runRole } from "./role.ts";
import { type ServiceConfig, startService } from "./service.ts";

interface Exchange {
  readonly request: IncomingMessage;
}

/** Paths whose answers are timed, by what is asked for there. */
const TIMED = { authorization: "/authorizations", payment: "/v1/payments" } as const;
type OwnTimes = Record<keyof typeof TIMED, number[]>;
const noTimes = (): OwnTimes => ({ authorization: [], payment: [] });

/**
 * The service, which also times its answers to card networks and to payers: from the arrival of a request's headers, which come in
 * one packet with the rest of it, until the answer is handed to the operating system.
 */
await runRole(async (config): Promise<Role> => {
  const { http, running } = await startService(config as ServiceConfig);
  const arrivals = new WeakMap<IncomingMessage, number>();
  let timesMs = noTimes();
  subscribe("http.server.request.start", (message) => {
    arrivals.set((message as Exchange).request, performance.now());
  });
  subscribe("http.server.response.finish", (message) => {
    const { request } = message as Exchange;
    const arrivedMs = arrivals.get(request);
    if (arrivedMs === undefined) return;
    for (const what of ["authorization", "payment"] as const)
      if (request.url?.endsWith(TIMED[what]) === true) timesMs[what].push(performance.now() - arrivedMs);
  });
  return {
    port: http.port,
    answer: () => {
      const answered = timesMs;
      timesMs = noTimes();
      return Promise.resolve(answered);
    },
    stop: () => running.stop(),
  };
});
