import { randomInt } from "node:crypto";
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { EngineError, reasonOf } from "./errors.ts";
import { choosePorts, LOOPBACK } from "./ports.ts";

export interface LoopbackAddress {
  readonly host: string;
  readonly port: number;
}

const OCTET_MAX = 255;

/** Maximum time for a request to arrive, and the interval at which that is checked. */
const ARRIVAL = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
} as const;

/** Far more than this machine's own programs need. */
const CONNECTIONS_MAX = 256;

/**
 * Returns an address for an engine that does not check Host, to be used behind its guard. A web page can try any
 * address of this machine, so on Linux the engine gets one of 2^24 addresses in addition to the port, chosen anew with
 * each start. macOS has only one address, so only the port is chosen.
 */
export async function hiddenAddress(): Promise<LoopbackAddress> {
  const { port } = await choosePorts({ port: { port: 0, variable: "" } });
  if (process.platform !== "linux") return { host: LOOPBACK, port };
  const octets = Array.from({ length: 3 }, () => String(randomInt(1, OCTET_MAX)));
  return { host: ["127", ...octets].join("."), port };
}

export const urlOf = ({ host, port }: LoopbackAddress): string => `http://${host}:${String(port)}`;

/** Permitted clients. `api`: programs, which post JSON without an Origin. `pages`: the guard's own pages. */
export type Audience = "api" | "pages";

export interface Guard {
  readonly url: string;
  stop(): Promise<void>;
}

/** Returns why a request is refused; null if it is allowed. */
function refusalOf({ headers, method }: IncomingMessage, hosts: readonly string[], audience: Audience) {
  if (!hosts.includes(headers.host ?? "")) return "The Host is not this machine's.";
  const { origin } = headers;
  if (audience === "pages") {
    const isOwn = origin === undefined || hosts.some((host) => origin === `http://${host}`);
    return isOwn ? null : "Another site's pages may not use this.";
  }
  if (origin !== undefined) return "Web pages may not use this.";
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  return method === "POST" && type === "application/json" ? null : "Post JSON.";
}

export interface GuardOptions {
  readonly audience: Audience;
  /** Page that the guard itself serves at `/`. */
  readonly entrance?: string;
}

/**
 * Serves an engine at a hidden address on a port of 127.0.0.1, only for requests that name this machine: refuses
 * requests by another site's page, and names rebound to this machine. No WebSockets. Throws EngineError START_FAILED if
 * the port is taken.
 */
export async function guardLoopback(
  port: number,
  target: LoopbackAddress,
  { audience, entrance }: GuardOptions,
): Promise<Guard> {
  const hosts = [LOOPBACK, "localhost", "[::1]"].map((host) => `${host}:${String(port)}`);
  const agent = new Agent({ keepAlive: true });
  const server = createServer(ARRIVAL, (incoming, outgoing) => {
    const refusal = refusalOf(incoming, hosts, audience);
    if (refusal === null) {
      if (entrance === undefined || incoming.url !== "/") return forward(incoming, outgoing, target, agent);
      outgoing.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(entrance);
      return;
    }
    incoming.resume();
    outgoing.writeHead(403, { "content-type": "text/plain" }).end(`${refusal}\n`);
  });
  server.maxConnections = CONNECTIONS_MAX;
  // Upgrades would be ended even without a listener; this makes it explicit, since a page may ask for one.
  server.on("upgrade", (_request, socket) => socket.destroy());
  try {
    server.listen({ port, host: LOOPBACK, exclusive: true });
    await once(server, "listening");
  } catch (error) {
    throw new EngineError("START_FAILED", `The guard of a port cannot listen: ${reasonOf(error)}`, {
      cause: error,
    });
  }
  return {
    url: urlOf({ host: LOOPBACK, port }),
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: LoopbackAddress,
  agent: Agent,
): void {
  const { headers, method, url } = incoming;
  const host = `${target.host}:${String(target.port)}`;
  // The engine sees its own address and no Origin, so that only the guard compares them.
  const { origin: _origin, ...passed } = headers;
  const onward = request({ ...target, agent, method, path: url, headers: { ...passed, host } }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
    answer.on("error", () => outgoing.destroy());
  });
  onward.on("error", () => {
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(502).end();
  });
  outgoing.on("close", () => onward.destroy());
  incoming.pipe(onward);
}
