/**
 * Why a request got no answer, in words that the caller who gave the URL may read: a name's address within the
 * service's networks, or an error's text, must not be disclosed.
 */
export const REASONS = {
  timedOut: "timed out",
  unresolved: "its name could not be resolved",
  closedAddress: "its address is not public",
  closedPort: "its port is not allowed",
  badUrl: "its URL is not allowed",
  refused: "the connection was refused",
  unreachable: "it could not be reached",
  cut: "the connection was cut",
  handshake: "the TLS handshake failed",
  certificate: "its certificate is not valid",
  headers: "its headers are too large",
  notHttp: "its answer is not HTTP",
  upgrade: "it requested another protocol",
  unsendable: "the request could not be sent",
  closed: "sending was stopped",
} as const;

/** A failure whose reason is known where it happens. */
export class ExchangeFailure extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super(reason);
    this.reason = reason;
  }
}

const BY_CODE: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", REASONS.refused],
  ["ECONNRESET", REASONS.cut],
  ["ECONNABORTED", REASONS.cut],
  ["EPIPE", REASONS.cut],
  ["HPE_INVALID_EOF_STATE", REASONS.cut],
  ["ETIMEDOUT", REASONS.timedOut],
  ["EHOSTUNREACH", REASONS.unreachable],
  ["ENETUNREACH", REASONS.unreachable],
  ["EADDRNOTAVAIL", REASONS.unreachable],
  ["EACCES", REASONS.unreachable],
  ["EPERM", REASONS.unreachable],
  ["HPE_HEADER_OVERFLOW", REASONS.headers],
  ["EPROTO", REASONS.handshake],
]);

/** Returns the reason for an error of a socket, of TLS or of the HTTP parser. */
export function reasonOf(error: unknown): string {
  if (error instanceof ExchangeFailure) return error.reason;
  const code = codeOf(error);
  if (code.startsWith("HPE_")) return BY_CODE.get(code) ?? REASONS.notHttp;
  if (code.startsWith("ERR_SSL_")) return REASONS.handshake;
  return BY_CODE.get(code) ?? REASONS.unsendable;
}

/** Returns the reason for a certificate's error. Its code, from OpenSSL or Node, names only what is wrong. */
export function certificateReason(error: unknown): string {
  const code = codeOf(error);
  return /^[A-Z_]{1,60}$/.test(code) ? `${REASONS.certificate}: ${code}` : REASONS.certificate;
}

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
