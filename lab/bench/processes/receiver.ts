import { once } from "node:events";
import { Agent, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { buffer, json } from "node:stream/consumers";
import express from "express";
import type { Identity } from "../../../test/support/certificates/authority.ts";
import { listen } from "../../../server/http/server.ts";
import { deliveryId } from "../../../src/domain/webhooks/delivery-id.ts";
import { verifyWebhook } from "../../../src/webhooks/verify-webhook.ts";
import type { DeliveredEvent } from "./deliveries.ts";
import { type Role, runRole } from "./role.ts";

export interface ReceiverConfig {
  readonly identity: Identity;
  /** `hangs`: it takes every request and answers none. */
  readonly behaviour: "answers" | "hangs";
}

/** The publisher of agents' events, and the endpoint that they are delivered to. */
export interface EventsAt {
  readonly port: number;
  readonly endpointId: string;
}

export type ReceiverRequest =
  /** A secret that deliveries are signed with. */
  | { readonly kind: "trust"; readonly secret: string }
  /** Answered with the port where a request is an event. */
  | { readonly kind: "events"; readonly at: EventsAt }
  | { readonly kind: "receipts" };

export interface Receipts {
  /** Deliveries by the type of their events, however often each of them came. */
  readonly received: Readonly<Record<string, number>>;
  /** Requests that did not verify. */
  readonly forged: number;
}

const HOST = "127.0.0.1";
/** Less than the generator waits. */
const DELIVERED_MS = 14_000;

/** Deliveries that have come, and the callers that wait for some. */
class Inbox {
  readonly #received = new Map<string, string>();
  readonly #waiting = new Map<string, () => void>();
  forged = 0;

  note(id: string, type: string): void {
    this.#received.set(id, type);
    this.#waiting.get(id)?.();
  }

  /** Whether it comes in time. */
  async comes(id: string): Promise<boolean> {
    if (this.#received.has(id)) return true;
    const comes = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), DELIVERED_MS);
      this.#waiting.set(id, () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
    this.#waiting.delete(id);
    return comes;
  }

  receipts(): Receipts {
    const received: Record<string, number> = {};
    for (const type of this.#received.values()) received[type] = (received[type] ?? 0) + 1;
    return { received, forged: this.forged };
  }
}

const inbox = new Inbox();
const secrets: string[] = [];

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const rawBody = await buffer(request);
  const verified = verifyWebhook({ rawBody, headers: request.headers, secret: secrets });
  if (verified.ok) inbox.note(verified.event.id, verified.event.type);
  else inbox.forged += 1;
  response.writeHead(verified.ok ? 204 : 400).end();
}

const keepAliveAgent = new Agent({ keepAlive: true });

/** Has the service publish an event. */
async function publish(port: number, path: string): Promise<DeliveredEvent> {
  const asking = httpRequest({ agent: keepAliveAgent, host: HOST, port, method: "POST", path }).end();
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  return (await json(response)) as DeliveredEvent;
}

/** The port where a request is an event, and is answered once its delivery has come. */
async function takeEvents({ endpointId, port }: EventsAt): Promise<number> {
  const front = await listen(HOST, 0);
  const app = express();
  app.disable("etag");
  app.post("/agents/:id/events", async (request, response) => {
    const { at, id } = await publish(port, request.path);
    const comes = await inbox.comes(deliveryId(id, endpointId, at));
    response.status(comes ? 200 : 504).json({});
  });
  front.serve(app);
  return front.port;
}

await runRole(async (given): Promise<Role> => {
  const { behaviour, identity } = given as ReceiverConfig;
  const server = createServer({ ...identity }, (request, response) => {
    if (behaviour === "hangs") return void request.resume();
    take(request, response).catch(() => response.destroy());
  });
  server.listen({ port: 0, host: HOST });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async answer(request) {
      const asked = request as ReceiverRequest;
      if (asked.kind === "trust") secrets.push(asked.secret);
      return asked.kind === "events" ? { port: await takeEvents(asked.at) } : inbox.receipts();
    },
    stop: () => Promise.resolve(server.closeAllConnections()),
  };
});
