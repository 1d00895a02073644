import { gunzipSync } from "node:zlib";
import type { Request, Response } from "express";

/** Cache policy for a path that contains the content's digest: its bytes never change. */
export const CACHED = "public, max-age=31536000, immutable";

const unpacked = new WeakMap<Buffer, Buffer>();

/**
 * Sends compressed bytes to a client that accepts gzip, as every browser does; otherwise decompresses them once, on
 * first use.
 */
export function sendCompressed(request: Request, response: Response, compressed: Buffer): void {
  response.setHeader("Vary", "Accept-Encoding");
  if (request.acceptsEncodings("gzip") === "gzip") {
    response.setHeader("Content-Encoding", "gzip");
    response.send(compressed);
    return;
  }
  const plain = unpacked.get(compressed) ?? gunzipSync(compressed);
  unpacked.set(compressed, plain);
  response.send(plain);
}
