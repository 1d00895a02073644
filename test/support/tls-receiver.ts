import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type Identity, newAuthority } from "./certificates/authority.ts";

/** A request that a receiver got, whole. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly at: Date;
}

/** Answers a request; one that does nothing leaves it without an answer. */
export type Handler = (request: Received, response: ServerResponse) => void;

export interface ReceiverOptions {
  /** Besides localhost, 127.0.0.1 and ::1. */
  readonly names?: readonly string[];
  /** Instead of one that its own authority issues. */
  readonly identity?: Identity;
}

/** A real HTTPS server on the loopback, with a certificate authority of its own. */
export interface TlsReceiver {
  /** `https://127.0.0.1:<port>`: no name, since what localhost resolves to differs between machines. */
  readonly url: string;
  readonly port: number;
  readonly caPem: string;
  /** A file that holds the same, until the receiver is closed. */
  readonly caFile: string;
  /** What it got, in the order of the requests' ends. */
  readonly requests: readonly Received[];
  /** How many connections it has seen, whether or not a request came on them. */
  readonly connections: number;
  respondWith(handler: Handler): void;
  /** Ends a request's connection with a TCP reset instead of an answer. */
  reset(response: ServerResponse): void;
  /** As soon as it has got so many in all. */
  received(count: number): Promise<readonly Received[]>;
  close(): Promise<void>;
}

const LOCAL_HOSTS = ["localhost", "127.0.0.1", "::1"];
const answerNothing: Handler = (_request, response) => void response.writeHead(204).end();

/** By default it answers 204. */
export async function startTlsReceiver(
  handler: Handler = answerNothing,
  options: ReceiverOptions = {},
): Promise<TlsReceiver> {
  const authority = newAuthority();
  const identity = options.identity ?? authority.issue([...LOCAL_HOSTS, ...(options.names ?? [])]);
  const folder = await mkdtemp(join(tmpdir(), "spending-control-receiver-"));
  const caFile = join(folder, "ca.pem");
  await writeFile(caFile, authority.caPem);

  const requests: Received[] = [];
  const waiting = new Set<() => void>();
  const sockets = new Set<Socket>();
  let current = handler;
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url: path = "", headers } = request;
    const received = { method, path, headers, body: await buffer(request), at: new Date() };
    requests.push(received);
    for (const look of waiting) look();
    current(received, response);
  };
  const server = createServer({ ...identity }, (request, response) => {
    // A request that breaks off was not received; a handler that fails leaves its request without an answer.
    take(request, response).catch(() => response.destroy());
  });
  let connections = 0;
  server.on("connection", (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  const { port } = address;

  return {
    url: `https://127.0.0.1:${String(port)}`,
    port,
    caPem: authority.caPem,
    caFile,
    requests,
    get connections() {
      return connections;
    },
    respondWith: (next) => {
      current = next;
    },
    reset: ({ socket }) => {
      // Only the connection beneath TLS can be reset.
      const beneath = [...sockets].find(({ remotePort }) => remotePort === socket?.remotePort);
      beneath?.resetAndDestroy();
    },
    received: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (requests.length < count) return;
          waiting.delete(look);
          resolve(requests);
        };
        waiting.add(look);
        look();
      }),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
