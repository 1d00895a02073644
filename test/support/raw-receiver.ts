import { once } from "node:events";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions, TLSSocket } from "node:tls";

/** A server that writes whatever it likes on its connections: what no HTTP server would. */
export interface RawReceiver {
  readonly port: number;
  /** How many bytes it has written on ended connections. */
  readonly bytesWritten: number;
  /** When no connection is open. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

type Behaviour = (socket: Socket) => void;

/** On TLS, once the first bytes of a request have come. */
export function startRawTls(options: TlsOptions, behave: Behaviour): Promise<RawReceiver> {
  const server = createTlsServer(options, (socket) => void socket.once("data", () => behave(socket)));
  return started(server, true);
}

/** On TCP, as soon as there is a connection. */
export function startRawTcp(behave: Behaviour): Promise<RawReceiver> {
  return started(createTcpServer(behave), false);
}

async function started(server: Server, secure: boolean): Promise<RawReceiver> {
  const open = new Set<Socket>();
  let bytesWritten = 0;
  // What a client cuts, or a handshake that fails, is what these tests are about.
  server.on("tlsClientError", () => {});
  const note = (socket: Socket): void => {
    open.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => {
      if (secure === socket instanceof TLSSocket) bytesWritten += socket.bytesWritten;
      open.delete(socket);
      server.emit("ended");
    });
  };
  server.on("connection", note);
  // Such a connection is told of twice, as the bare one and as the one that lies upon it.
  server.on("secureConnection", note);
  server.listen({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return {
    port: address.port,
    get bytesWritten() {
      return bytesWritten;
    },
    idle: async () => {
      while (open.size > 0) await once(server, "ended");
    },
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
