import type { Response } from "express";
import type { Refusal } from "../../src/domain/errors.ts";
import type { StreamConnection, OpenableStream } from "../../src/changes/streams.ts";

/** Maximum unread bytes of a slow reader, which is then cut off and resumes. */
const UNTAKEN_BYTES_MAX = 512 * 1024;

/** Headers that keep proxies from storing, buffering or changing the stream. */
const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store, no-transform",
  "X-Accel-Buffering": "no",
  Connection: "close",
};

/**
 * Sends events until either side ends the stream; for HEAD, only the headers. Returns a refusal if the stream cannot be
 * opened, in which case nothing was sent.
 */
export function sendEvents(
  response: Response,
  stream: OpenableStream,
  check: StreamConnection["check"],
  onBegun: () => void,
): Refusal | null {
  const begin = () => response.writeHead(200, HEADERS);
  if (response.req.method === "HEAD") {
    begin().end();
    return null;
  }
  const waiting: (Buffer | string)[] = [];
  const line: StreamConnection = {
    check,
    send(text) {
      if (!response.headersSent) return void waiting.push(text);
      if (response.writableEnded || response.destroyed) return;
      response.write(text);
      if (response.writableLength > UNTAKEN_BYTES_MAX) response.destroy();
    },
    end(text) {
      if (response.headersSent && !response.writableEnded) response.end(text);
    },
  };
  const opened = stream.open(line);
  if (!opened.ok) return opened.refusal;
  response.once("close", opened.value);
  if (response.destroyed) opened.value();
  begin().flushHeaders();
  onBegun();
  for (const text of waiting) line.send(text);
  return null;
}
