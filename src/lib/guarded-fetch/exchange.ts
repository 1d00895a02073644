import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { TLSSocket } from "node:tls";
import type { Destination } from "./destination.ts";
import { ExchangeFailure, REASONS, reasonOf } from "./reasons.ts";

const HEADERS_MAX_BYTES = 16 * 1_024;
const BODY_MAX_BYTES = 16 * 1_024;
/** Counted from the headers: the answer is known, and its body only helps people to find a mistake. */
const BODY_MAX_MS = 1_000;
const EXCERPT_CHARACTERS_MAX = 1_024;
/** Answers before the answer (1xx), each of which may have headers up to the bound. */
const INTERIM_ANSWERS_MAX = 16;

/** Headers that the exchange sets itself, whatever the caller's. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export interface Message {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface Answer {
  readonly httpStatus: number;
  readonly bodyExcerpt: string;
}

/**
 * Sends one request and reads its answer on a socket, which is destroyed in the end. A caller ends it early by
 * destroying it.
 */
export async function exchange(socket: TLSSocket, to: Destination, message: Message): Promise<Answer> {
  try {
    // A socket that has closed already emits no further event.
    if (socket.destroyed) throw new ExchangeFailure(REASONS.cut);
    const response = await answerTo(socket, to, message);
    const body = await beginningOf(response);
    return { httpStatus: response.statusCode ?? 0, bodyExcerpt: excerptOf(response, body) };
  } finally {
    socket.destroy();
  }
}

/** The answer as soon as its headers are there. */
function answerTo(socket: TLSSocket, to: Destination, message: Message): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = (reason: string): void => {
      reject(new ExchangeFailure(reason));
      socket.destroy();
    };
    // A given connection bypasses agents, pools and the environment's proxy.
    const sent = httpsRequest({
      createConnection: () => socket,
      host: to.host,
      port: to.port,
      path: to.path,
      method: message.method,
      headers: headersOf(message),
      maxHeaderSize: HEADERS_MAX_BYTES,
      insecureHTTPParser: false,
    });
    let interim = 0;
    sent.on("information", () => {
      interim += 1;
      if (interim > INTERIM_ANSWERS_MAX) refuse(REASONS.headers);
    });
    sent.once("upgrade", () => refuse(REASONS.upgrade));
    sent.once("response", (response) => {
      const { statusCode: status = 0 } = response;
      // An upgrade that names no protocol is reported as a response, and so is an invalid status.
      if (status < 200) refuse(status === 101 ? REASONS.upgrade : REASONS.notHttp);
      else resolve(response);
    });
    sent.on("error", (error) => refuse(reasonOf(error)));
    sent.once("close", () => refuse(REASONS.cut));
    sent.end(message.body ?? undefined);
  });
}

function headersOf({ headers, body }: Message): Record<string, string> {
  const theirs = Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()));
  return {
    ...Object.fromEntries(theirs),
    "accept-encoding": "identity",
    connection: "close",
    "content-length": String(Buffer.byteLength(body ?? "")),
  };
}

/** Returns the beginning of the body within the bounds. A broken body does not change the answer. */
function beginningOf(response: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const finish = (): void => {
      clearTimeout(timer);
      response.off("data", take);
      resolve(Buffer.concat(parts).subarray(0, BODY_MAX_BYTES));
    };
    const take = (part: Buffer): void => {
      parts.push(part);
      bytes += part.length;
      if (bytes >= BODY_MAX_BYTES) finish();
    };
    const timer = setTimeout(finish, BODY_MAX_MS);
    response.on("data", take);
    response.on("error", finish);
    response.once("end", finish);
    response.once("close", finish);
  });
}

/** Returns an excerpt for people: controls and invisible characters are spaces; a compressed body is not shown. */
function excerptOf(response: IncomingMessage, body: Buffer): string {
  if (response.headers["content-encoding"] !== undefined) return "";
  // Decoded as a stream, so that a character which the bound has cut is left out.
  const text = new TextDecoder().decode(body, { stream: true });
  const readable = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
  return readable.slice(0, EXCERPT_CHARACTERS_MAX).replace(/[\uD800-\uDBFF]$/, "");
}
