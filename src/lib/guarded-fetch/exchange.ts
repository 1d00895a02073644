import { type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Destination } from "./destination.ts";
import { ExchangeFailure, REASONS, reasonOf } from "./reasons.ts";

/** Limits of an answer of which only an excerpt is read. */
const EXCERPT_BOUNDS: AnswerBounds = {
  headersMaxBytes: 16 * 1_024,
  bodyMaxBytes: 16 * 1_024,
  // Counted from the headers: the answer is known, and its body only helps people to find a mistake.
  bodyMaxMs: 1_000,
};
const EXCERPT_CHARACTERS_MAX = 1_024;
/** Maximum pieces of a body: one that comes byte by byte costs no more processor time than a few requests. */
const BODY_PIECES_MAX = 8_192;
/** First capacity of a body, which doubles as the body grows. */
const BODY_CAPACITY_BYTES = 4_096;
/** Maximum interim answers (1xx), each of which may have headers up to the limit. */
const INTERIM_ANSWERS_MAX = 16;

/** Headers set by the exchange itself, whatever the caller's. */
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

export interface AnswerBounds {
  readonly headersMaxBytes: number;
  readonly bodyMaxBytes: number;
  /** Counted from the headers. */
  readonly bodyMaxMs: number;
}

/** An answer with its headers and its body, as far as the limits allow. */
export interface WholeAnswer {
  readonly httpStatus: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Whether the body continued beyond the limits, or broke off. */
  readonly isCut: boolean;
}

/** Sends one request and reads its answer's status and the beginning of its body. */
export async function exchange(socket: Socket, to: Destination, message: Message): Promise<Answer> {
  return onSocket(socket, async () => {
    const response = await answerTo(socket, to, message, EXCERPT_BOUNDS);
    const { body } = await beginningOf(response, EXCERPT_BOUNDS);
    return { httpStatus: response.statusCode ?? 0, bodyExcerpt: excerptOf(response, body) };
  });
}

export async function wholeExchange(
  socket: Socket,
  to: Destination,
  message: Message,
  bounds: AnswerBounds,
): Promise<WholeAnswer> {
  return onSocket(socket, async () => {
    const response = await answerTo(socket, to, message, bounds);
    const { body, isCut } = await beginningOf(response, bounds);
    return { httpStatus: response.statusCode ?? 0, headers: response.headers, body, isCut };
  });
}

/** Works on a socket, which is destroyed at the end. A caller ends the work early by destroying it. */
async function onSocket<T>(socket: Socket, work: () => Promise<T>): Promise<T> {
  try {
    // A socket that has closed already emits no further event.
    if (socket.destroyed) throw new ExchangeFailure(REASONS.cut);
    return await work();
  } finally {
    socket.destroy();
  }
}

/** Resolves to the answer as soon as its headers arrive. */
function answerTo(
  socket: Socket,
  to: Destination,
  message: Message,
  { headersMaxBytes }: AnswerBounds,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = (reason: string): void => {
      reject(new ExchangeFailure(reason));
      socket.destroy();
    };
    // A given connection bypasses agents, pools and the environment's proxy.
    const request = to.isTls ? httpsRequest : httpRequest;
    const sent = request({
      createConnection: () => socket,
      host: to.host,
      port: to.port,
      path: to.path,
      method: message.method,
      headers: headersOf(message),
      maxHeaderSize: headersMaxBytes,
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

function headersOf({ headers, body, method }: Message): Record<string, string> {
  const theirs = Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()));
  const hasLength = body !== null || method !== "GET";
  return {
    ...Object.fromEntries(theirs),
    "accept-encoding": "identity",
    connection: "close",
    ...(hasLength ? { "content-length": String(Buffer.byteLength(body ?? "")) } : {}),
  };
}

/** Returns the beginning of the body within the limits. A broken body does not change the answer. */
function beginningOf(
  response: IncomingMessage,
  { bodyMaxBytes, bodyMaxMs }: AnswerBounds,
): Promise<Pick<WholeAnswer, "body" | "isCut">> {
  return new Promise((resolve) => {
    // One buffer: pieces of a byte each would take a hundred times the body's size.
    let body = Buffer.alloc(Math.min(BODY_CAPACITY_BYTES, bodyMaxBytes));
    let bytes = 0;
    let pieces = 0;
    const finish = (): void => {
      clearTimeout(timer);
      response.off("data", take);
      const isCut = bytes > bodyMaxBytes || !response.complete;
      resolve({ body: body.subarray(0, bytes), isCut });
    };
    const take = (piece: Buffer): void => {
      const needed = Math.min(bytes + piece.length, bodyMaxBytes);
      if (needed > body.length) {
        const grown = Buffer.alloc(Math.min(Math.max(needed, 2 * body.length), bodyMaxBytes));
        body.copy(grown, 0, 0, bytes);
        body = grown;
      }
      piece.copy(body, bytes);
      bytes += piece.length;
      pieces += 1;
      if (bytes > bodyMaxBytes || pieces >= BODY_PIECES_MAX) finish();
    };
    const timer = setTimeout(finish, bodyMaxMs);
    response.on("data", take);
    response.on("error", finish);
    response.once("end", finish);
    response.once("close", finish);
  });
}

/** Returns an excerpt for people: control and invisible characters become spaces; a compressed body is not shown. */
function excerptOf(response: IncomingMessage, body: Buffer): string {
  if (response.headers["content-encoding"] !== undefined) return "";
  // Decoded as a stream, so that a character cut by the limit is dropped.
  const text = new TextDecoder().decode(body, { stream: true });
  const readable = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
  return readable.slice(0, EXCERPT_CHARACTERS_MAX).replace(/[\uD800-\uDBFF]$/, "");
}
