import { X509Certificate } from "node:crypto";
import {
  connect as connectPlain,
  isIP,
  type LookupFunction,
  type Socket,
  type TcpNetConnectOpts,
} from "node:net";
import {
  connect as connectTls,
  type ConnectionOptions,
  createSecureContext,
  rootCertificates,
  type SecureContext,
  TLSSocket,
} from "node:tls";
import { PlainError } from "../plain-error.ts";
import type { Destination } from "./destination.ts";
import { certificateReason, ExchangeFailure, REASONS, reasonOf } from "./reasons.ts";

/** Delay before the next of several addresses is tried; the last one has the whole deadline. */
const NEXT_ADDRESS_MS = 1_000;

/** Returns the trusted authorities, read once: there are about 140. Throws a `PlainError` if `extraCa` has none. */
export function trustOf(extraCa: string | null): SecureContext {
  if (extraCa === null) return createSecureContext({ minVersion: "TLSv1.2" });
  const extra = extraCa.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (extra.length === 0 || !extra.every(isCertificate))
    throw new PlainError("Additional trusted certificates must be PEM.");
  return createSecureContext({ minVersion: "TLSv1.2", ca: [...rootCertificates, ...extra] });
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== "";
  } catch {
    return false;
  }
}

export interface Dialing {
  readonly destination: Destination;
  /** Checked addresses. No other is connected to, since the name is not resolved again. */
  readonly addresses: readonly string[];
  readonly trust: SecureContext;
  /** Final check of the address that the socket is connected to. */
  readonly mayTalkTo: (address: string) => boolean;
  readonly signal: AbortSignal;
}

/** TLS passes options to TCP that its own type lacks. */
type Options = ConnectionOptions &
  Pick<TcpNetConnectOpts, "autoSelectFamily" | "autoSelectFamilyAttemptTimeout" | "lookup" | "port">;

/**
 * Opens a connection, with verified TLS or plain, on which nothing is written yet. The connection ends when the signal
 * is aborted, now or later.
 */
export function dial(dialing: Dialing): Promise<Socket> {
  const { isTls } = dialing.destination;
  return new Promise((resolve, reject) => {
    const options = optionsOf(dialing);
    const socket = isTls ? connectTls(options) : connectPlain(options);
    endWith(dialing.signal, socket);
    // Stays for the socket's life: an error after the exchange is ignored and must not end the process.
    socket.on("error", (error) => reject(new ExchangeFailure(handshakeReason(socket, error))));
    socket.once("close", () => reject(new ExchangeFailure(REASONS.cut)));
    socket.once(isTls ? "secureConnect" : "connect", () => {
      const { remoteAddress } = socket;
      if (remoteAddress !== undefined && dialing.mayTalkTo(remoteAddress)) return resolve(socket);
      reject(new ExchangeFailure(REASONS.closedAddress));
      socket.destroy();
    });
  });
}

function optionsOf({ destination, addresses, trust }: Dialing): Options {
  return {
    host: destination.host,
    port: destination.port,
    lookup: handingOver(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    secureContext: trust,
    rejectUnauthorized: true,
    ALPNProtocols: ["http/1.1"],
    ...(destination.isAddress ? {} : { servername: destination.host }),
  };
}

function endWith(signal: AbortSignal, socket: Socket): void {
  const end = (): void => void socket.destroy();
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  socket.once("close", () => signal.removeEventListener("abort", end));
}

/** Returns a look-up of the checked addresses. Node calls it only for names: check a literal address beforehand. */
const handingOver =
  (addresses: readonly string[]): LookupFunction =>
  (_host, options, callback) => {
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = found;
    process.nextTick(() => {
      if (options.all === true) callback(null, found);
      else callback(null, first?.address ?? "", first?.family);
    });
  };

/** Node marks the socket if the certificate is the problem; its errors do not say so. */
const handshakeReason = (socket: Socket, error: Error): string =>
  socket instanceof TLSSocket && socket.authorizationError ? certificateReason(error) : reasonOf(error);
