import { randomUUID } from "node:crypto";
import express from "express";
import { listen } from "../../../server/http/server.ts";
import { DELIVERED_EVENT } from "../systems/system.ts";
import { type Role, runRole } from "./role.ts";
import { type ServiceConfig, startService } from "./service.ts";

/** Port at which each request is an event. */
export interface EventsPort {
  readonly port: number;
}

/** An event that was published. */
export interface DeliveredEvent {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The service, and beside it a port where its journal is given the event that an agent was paused, though it was not. */
await runRole(async (config): Promise<Role> => {
  const { http, running } = await startService(config as ServiceConfig);
  const events = await listen("127.0.0.1", 0);
  const app = express();
  app.disable("etag");
  app.post("/agents/:id/events", async (request, response) => {
    const published: DeliveredEvent = { id: `evt_${randomUUID()}`, at: Date.now() };
    await running.journal.publishLifecycle(request.params.id, [
      { ...published, type: DELIVERED_EVENT, revision: 0 },
    ]);
    response.status(201).json(published);
  });
  events.serve(app);
  const eventsPort: EventsPort = { port: events.port };
  return {
    port: http.port,
    answer: () => Promise.resolve(eventsPort),
    async stop() {
      await events.drain();
      await running.stop();
    },
  };
});
