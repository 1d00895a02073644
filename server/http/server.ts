import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { ANONYMOUS_PER_MINUTE } from "../../src/contract/rate-classes.ts";
import { refusal } from "../../src/domain/errors.ts";
import { rateLimitStatus } from "../../src/limits/fixed-window-limiter.ts";
import { rateLimitHeaders, surfaceOf } from "./admission.ts";
import { newUuid } from "../../src/lib/ids.ts";
import {
  type AddressShare,
  AddressShares,
  connectionsMax,
  endIfSilent,
  oneAtATime,
  ofAddressMax,
} from "./connection-limits.ts";
import { errorBodyOf } from "./errors.ts";
import { PROBES } from "./probes.ts";
import { REQUEST_ID } from "./request-context.ts";
import { inSlices } from "./slices.ts";
import { PlainError } from "../../src/lib/plain-error.ts";

const DRAIN_TIMEOUT_MS = 10_000;

/**
 * Maximum connections that the kernel keeps until they are accepted; its own limit may be lower. Connections beyond it
 * are tried again by their clients after a second or more.
 */
const BACKLOG_MAX = 4_096;

/**
 * Timeouts for a request's arrival, against clients that send slowly on purpose. Node checks both at the interval
 * given.
 */
const ARRIVAL = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
} as const;

/** Maximum time for the sender of a malformed or slow request to read the refusal. */
const REFUSAL_TIMEOUT_MS = 1_000;

/** HTTP server that holds its port from the start and serves requests once it has an application. */
export interface HttpServer {
  readonly port: number;
  serve(application: RequestListener, share?: AddressShare): void;
  /**
   * Stops accepting connections and closes each one after its response. Cuts off requests that take longer than
   * `withinMs`; resolves to the number of requests cut off.
   */
  drain(withinMs?: number): Promise<number>;
}

/** The address is taken or not permitted. The message is one line for an operator. */
export class ListenError extends PlainError {
  override readonly name = "ListenError";

  /** Whether another program listens there. */
  readonly isTaken: boolean;

  constructor(message: string, isTaken = false) {
    super(message);
    this.isTaken = isTaken;
  }
}

const starting: RequestListener = (request, response) => {
  if (request.url === "/healthz") {
    // The process is live but not ready.
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"status":"ok"}');
    return;
  }
  const requestId = newUuid();
  const reason = refusal("SERVICE_UNAVAILABLE", "The service is starting.", { retryAfterSeconds: 1 });
  // The limiter does not run yet, so nothing is counted.
  const limits =
    surfaceOf(request.url ?? "") === null
      ? {}
      : rateLimitHeaders(rateLimitStatus(ANONYMOUS_PER_MINUTE, 0, new Date()));
  const headers = { "content-type": "application/json", "retry-after": "1", [REQUEST_ID]: requestId };
  response.writeHead(503, { ...headers, ...limits });
  response.end(JSON.stringify(errorBodyOf(reason, requestId)));
};

export interface ListenOptions {
  /** Maximum idle time of a connection between requests; Node's default is 5. */
  readonly keepAliveSeconds?: number;
  /** Environment variable that sets the port, named in errors. */
  readonly variable?: string;
}

/** Maximum attempts to find a port that is free at each address of localhost. */
const PORT_ATTEMPTS_MAX = 3;

/**
 * Binds the port that `variable` sets. `localhost` means IPv4 and, if the machine has it, IPv6: browsers try both and
 * must not reach another program at either. Throws `ListenError`.
 */
export async function listen(
  host: string,
  port: number,
  { keepAliveSeconds, variable = "PORT" }: ListenOptions = {},
): Promise<HttpServer> {
  const isLocalhost = host === "localhost";
  let application = starting;
  let share: AddressShare = {
    ofAddressMax: ofAddressMax(),
    isProxy: () => false,
    onRefused: () => undefined,
  };
  const shares = new AddressShares();
  const open = new Set<ServerResponse>();
  let isDraining = false;
  const newServer = (): Server => {
    const options =
      keepAliveSeconds === undefined ? ARRIVAL : { ...ARRIVAL, keepAliveTimeout: keepAliveSeconds * 1_000 };
    const server = createServer(options, (request, response) => {
      open.add(response);
      response.once("close", () => {
        open.delete(response);
        if (isDraining) setImmediate(() => server.closeIdleConnections());
      });
      if (isDraining) response.shouldKeepAlive = false;
      application(request, response);
    });
    server.maxConnections = Math.floor(connectionsMax() / (isLocalhost ? 2 : 1));
    server.on("connection", (socket) => {
      if (shares.admit(socket, share)) endIfSilent(socket);
    });
    server.on("clientError", (error: NodeJS.ErrnoException, socket) =>
      refuseMalformed(
        socket,
        error.code === "ERR_HTTP_REQUEST_TIMEOUT"
          ? "The request took too long to arrive."
          : "The request is not well-formed HTTP.",
      ),
    );
    return server;
  };
  const servers = isLocalhost
    ? await listenOnLocalhost(newServer, port, variable)
    : [await listenOn(newServer(), host, port, variable)];
  return {
    port: portOf(servers[0]),
    serve(next, nextShare = share) {
      share = nextShare;
      application = oneAtATime(inSlices(next, ({ url = "" }) => PROBES.has(url)));
    },
    async drain(withinMs = DRAIN_TIMEOUT_MS) {
      isDraining = true;
      // Announced in each response whose headers have not gone out yet.
      for (const response of open) response.shouldKeepAlive = false;
      let cut = 0;
      const timer = setTimeout(() => {
        cut = open.size;
        for (const server of servers) server.closeAllConnections();
      }, withinMs);
      await Promise.all(servers.map(close));
      clearTimeout(timer);
      return cut;
    },
  };
}

type Listening = readonly [Server, ...Server[]];

async function listenOnLocalhost(
  newServer: () => Server,
  port: number,
  variable: string,
): Promise<Listening> {
  for (let attempts = 1; ; attempts += 1) {
    const first = await listenOn(newServer(), "127.0.0.1", port, variable);
    try {
      return [first, await listenOn(newServer(), "::1", portOf(first), variable)];
    } catch (error) {
      if (!(error instanceof ListenError)) throw error;
      if (!error.isTaken) return [first];
      await close(first);
      if (port !== 0 || attempts >= PORT_ATTEMPTS_MAX) throw error;
    }
  }
}

async function listenOn(server: Server, host: string, port: number, variable: string): Promise<Server> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, host, port, variable)));
    server.listen({ host, port, backlog: BACKLOG_MAX }, resolve);
  });
  // For example, there is no file descriptor for one more connection: it is lost and the server continues.
  server.on("error", () => undefined);
  return server;
}

/**
 * Answers malformed HTTP, oversized headers and requests that time out with the flat error. Node gives no response
 * object for these.
 */
function refuseMalformed(socket: Duplex, message: string): void {
  if (!socket.writable) return void socket.destroy();
  const reason = refusal("VALIDATION_FAILED", message, { issues: [] });
  const requestId = newUuid();
  const body = JSON.stringify(errorBodyOf(reason, requestId));
  const head = [
    "HTTP/1.1 400 Bad Request",
    "Content-Type: application/json; charset=utf-8",
    `${REQUEST_ID}: ${requestId}`,
  ];
  socket.end([...head, `Content-Length: ${body.length}`, "Connection: close", "", body].join("\r\n"));
  // A client that does not close its half would keep the connection open forever.
  setTimeout(() => socket.destroy(), REFUSAL_TIMEOUT_MS).unref();
}

function explain(error: NodeJS.ErrnoException, host: string, port: number, variable: string): Error {
  if (error.code === "EADDRINUSE") {
    return new ListenError(
      `Port ${port} on ${host} is taken; set ${variable} to another (0 = any free one).`,
      true,
    );
  }
  return new ListenError(`Cannot listen on ${host}:${port} (${error.code ?? error.message}).`);
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  await closed;
}
