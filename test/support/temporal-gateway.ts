import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Identity } from "./certificates/authority.ts";

export interface GatewayOptions {
  /** Of the gateway itself. */
  readonly identity: Identity;
  /** PEM of the authority whose client certificates are demanded; null: none are. */
  readonly clientCa: string | null;
  /** API key that is demanded; null: none is. */
  readonly apiKey: string | null;
  /** Methods that no client may call. */
  readonly forbidden?: readonly string[];
}

/** A TLS terminator in front of a Temporal, as operators run one, and as Temporal Cloud looks to clients. */
export interface TemporalGateway {
  readonly port: number;
  /** Names of the methods that were passed on. */
  readonly methods: readonly string[];
  /** Demands something else of clients from now on; connections that are open end. */
  demand(changes: Partial<Pick<GatewayOptions, "apiKey" | "clientCa" | "forbidden">>): void;
  close(): Promise<void>;
}

const UNAUTHENTICATED = { "grpc-status": "16", "grpc-message": "Request unauthorized." };
const PERMISSION_DENIED = { "grpc-status": "7", "grpc-message": "Request forbidden." };

export async function startTemporalGateway(
  address: string,
  options: GatewayOptions,
): Promise<TemporalGateway> {
  const methods: string[] = [];
  const upstream = connect(`http://${address}`);
  let demanded = options;
  const tls = ({ clientCa: ca, identity }: GatewayOptions) => ({
    ...identity,
    ...(ca === null ? {} : { ca, requestCert: true, rejectUnauthorized: true }),
  });
  const server = createSecureServer(tls(options));
  const sockets = new Set<TLSSocket>();
  server.on("secureConnection", (socket: TLSSocket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("sessionError", () => undefined);
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    const { apiKey, forbidden = [] } = demanded;
    if (apiKey !== null && headers.authorization !== `Bearer ${apiKey}`)
      return refuse(stream, UNAUTHENTICATED);
    const method = String(headers[":path"]).split("/").at(-1) ?? "";
    if (forbidden.includes(method)) return refuse(stream, PERMISSION_DENIED);
    methods.push(method);
    passOn(stream, headers, upstream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const listening = server.address();
  if (listening === null || typeof listening === "string") throw new Error("it listens on no port");
  return {
    port: listening.port,
    methods,
    demand(changes) {
      demanded = { ...demanded, ...changes };
      server.setSecureContext(tls(demanded));
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      upstream.destroy();
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}

function refuse(stream: ServerHttp2Stream, status: typeof UNAUTHENTICATED): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc", ...status }, { endStream: true });
}

function passOn(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, upstream: ClientHttp2Session): void {
  const passed = upstream.request({ ...headers, ":scheme": "http" });
  let trailers: IncomingHttpHeaders = {};
  passed.on("trailers", (sent: IncomingHttpHeaders) => (trailers = sent));
  passed.on("error", () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  passed.on("response", (response, flags) => {
    if (stream.destroyed) return;
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    stream.respond(response, endStream ? { endStream } : { waitForTrailers: true });
    if (!endStream) passed.pipe(stream);
  });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.on("close", () => {
    if (!passed.closed) passed.close(constants.NGHTTP2_CANCEL);
  });
  stream.pipe(passed);
}
